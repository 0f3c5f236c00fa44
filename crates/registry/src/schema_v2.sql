-- Version 2: a user's sessions end by number. Session tokens hold the epoch in which they were issued; a new password or
-- role begins the next one.
ALTER TABLE user ADD COLUMN session_epoch INTEGER NOT NULL DEFAULT 0;
