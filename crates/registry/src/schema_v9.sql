-- Version 9: devices and their profiles have packages of firmware and software, and tenants have limits. The packages themselves are in
-- the store of keys.
ALTER TABLE device ADD COLUMN firmware BLOB;
ALTER TABLE device ADD COLUMN software BLOB;
ALTER TABLE profile ADD COLUMN firmware BLOB;
ALTER TABLE profile ADD COLUMN software BLOB;
-- The limits of a tenant; NULL is no limit.
ALTER TABLE tenant ADD COLUMN messages_per_second_max INTEGER CHECK (messages_per_second_max > 0);
ALTER TABLE tenant ADD COLUMN points_per_second_max INTEGER CHECK (points_per_second_max > 0);
ALTER TABLE tenant ADD COLUMN connections_max INTEGER CHECK (connections_max > 0);
