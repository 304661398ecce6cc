-- What a migration of a later version may do while controllers of this version work (CONTRIBUTING.md): for upgrades between
-- commits with the same schema. Written as migrate.rs applies one: in one transaction, under its lock.
SELECT pg_advisory_xact_lock(4711, 1);
ALTER TABLE node ADD COLUMN made_up text COLLATE "C";
ALTER TABLE lease ADD COLUMN made_up bigint NOT NULL DEFAULT 0;
CREATE TABLE made_up (node uuid PRIMARY KEY, writes bigint NOT NULL);
CREATE INDEX node_made_up ON node (made_up);
CREATE FUNCTION made_up_of_node() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.made_up := NEW.provision_state;
    INSERT INTO made_up VALUES (NEW.uuid, 1) ON CONFLICT (node) DO UPDATE SET writes = made_up.writes + 1;
    RETURN NEW;
END $$;
CREATE TRIGGER made_up BEFORE UPDATE ON node FOR EACH ROW EXECUTE FUNCTION made_up_of_node();
UPDATE anneal_schema SET version = version + 1;
