-- What changes with this schema only adds: a controller that knows schema 1 alone goes on working beside newer ones.

-- Controllers that know fewer migrations than this cannot use the database (src/migrate.rs).
ALTER TABLE anneal_schema ADD COLUMN oldest bigint NOT NULL DEFAULT 1;

-- How many migrations a controller knows; it says so when it reports itself. Those of schema 1 do not.
ALTER TABLE conductor ADD COLUMN schema bigint NOT NULL DEFAULT 1;

-- The last numbers of the sequence are lost where an asynchronous standby takes over, and would be given again. Every server that
-- takes over begins a new timeline, so that is the upper half of an epoch. A trigger, since controllers of schema 1 take leases
-- too. The sequence gives less than 2^32 numbers between two restores of a backup, which set it anew (src/restored.rs).
CREATE FUNCTION lease_epoch_of_timeline() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.epoch := NEW.epoch + (('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint << 32);
    RETURN NEW;
END $$;
CREATE TRIGGER lease_epoch_of_timeline BEFORE INSERT ON lease
    FOR EACH ROW EXECUTE FUNCTION lease_epoch_of_timeline();
