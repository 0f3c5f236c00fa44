-- Version 10: device profiles take devices by the chain of their certificates (ThingsBoard's X509_CERTIFICATE_CHAIN). A profile with this column
-- has the strategy X509_CERTIFICATE_CHAIN, 'DISABLED' in provision_strategy, the authority's fingerprint as its key, and its certificate as its secret.
ALTER TABLE profile ADD COLUMN certificate_chain TEXT;
