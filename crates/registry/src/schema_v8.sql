-- Version 8: device profiles give credentials to devices that ask for them with the key and the secret of the profile (ThingsBoard's provisioning).
ALTER TABLE profile ADD COLUMN provision_strategy TEXT NOT NULL DEFAULT 'DISABLED'
    CHECK (provision_strategy IN ('DISABLED', 'ALLOW_CREATE_NEW_DEVICES', 'CHECK_PRE_PROVISIONED_DEVICES'));
ALTER TABLE profile ADD COLUMN provision_key TEXT;
ALTER TABLE profile ADD COLUMN provision_secret TEXT;
CREATE UNIQUE INDEX profile_by_provision_key ON profile (provision_key);
