-- Credentials of all kinds in one table: what a device logs in with, found by its id. `value` is ThingsBoard's credentialsValue.
CREATE TABLE credentials (
    device BLOB PRIMARY KEY REFERENCES device (id) ON DELETE CASCADE,
    kind   TEXT NOT NULL CHECK (kind IN ('ACCESS_TOKEN', 'MQTT_BASIC', 'X509_CERTIFICATE')),
    id     TEXT NOT NULL UNIQUE,
    value  TEXT
) STRICT, WITHOUT ROWID;
INSERT INTO credentials SELECT device, 'ACCESS_TOKEN', token, NULL FROM access_token;
DROP TABLE access_token;
