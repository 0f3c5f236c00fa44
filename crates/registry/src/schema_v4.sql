-- Version 4: gateways. `gateway` is 1 for a device that speaks for the devices behind it. `last_gateway` is the device that last connected this one
-- as its gateway; that device may have been deleted since.
ALTER TABLE device ADD COLUMN gateway INTEGER NOT NULL DEFAULT 0 CHECK (gateway IN (0, 1));
ALTER TABLE device ADD COLUMN last_gateway BLOB CHECK (last_gateway IS NULL OR length(last_gateway) = 16);
