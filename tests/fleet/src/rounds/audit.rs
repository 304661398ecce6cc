//! What PostgreSQL itself notes of leases and of writes of nodes, by triggers in a schema of their own.

use super::judge::{LeaseChange, NodeWrite};
use crate::network::number_of;
use anyhow::{Context, Result};
use postgres_server::Server;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// `client`: the address of the writer.
const SCHEMA: &str = "
CREATE SCHEMA judge;
CREATE FUNCTION judge.micros() RETURNS bigint LANGUAGE sql AS
    'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint';
CREATE TABLE judge.lease (seq bigserial, at bigint, node uuid, holder text, epoch bigint, until bigint);
CREATE TABLE judge.written (seq bigserial, at bigint, node uuid, client text, holder text, state text);
CREATE FUNCTION judge.note_lease() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO judge.lease (at, node, epoch, until) VALUES (judge.micros(), OLD.node, OLD.epoch, OLD.until);
    ELSE
        INSERT INTO judge.lease (at, node, holder, epoch, until)
            VALUES (judge.micros(), NEW.node, NEW.holder, NEW.epoch, NEW.until);
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION judge.note_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO judge.written (at, node, client, holder, state) VALUES (judge.micros(), NEW.uuid,
        host(inet_client_addr()), (SELECT holder FROM lease WHERE node = NEW.uuid), NEW.provision_state);
    RETURN NULL;
END $$;
CREATE TRIGGER judge_lease AFTER INSERT OR UPDATE OR DELETE ON lease
    FOR EACH ROW EXECUTE FUNCTION judge.note_lease();
CREATE TRIGGER judge_write AFTER UPDATE ON node FOR EACH ROW EXECUTE FUNCTION judge.note_write();
";

/// From here on the server notes.
pub fn begin(server: &Server, database: &str) {
    server.sql(database, SCHEMA);
}

/// What it noted so far is forgotten, but for the newest lease of each node: it may be in use.
pub fn forget(server: &Server, database: &str) {
    const NEWEST: &str = "DELETE FROM judge.lease l USING (SELECT node, max(seq) AS newest FROM judge.lease GROUP BY node) kept
        WHERE l.node = kept.node AND l.seq < kept.newest";
    server.sql(database, NEWEST);
    server.sql(database, "TRUNCATE judge.written");
}

/// The changes of leases.
///
/// # Errors
/// When what the server prints is not understood.
pub fn leases(server: &Server, database: &str) -> Result<Vec<LeaseChange>> {
    let printed = server.sql(database, "SELECT at, node, holder, epoch, until FROM judge.lease ORDER BY seq");
    printed.lines().map(|line| lease(line).with_context(|| line.to_owned())).collect()
}

fn lease(line: &str) -> Result<LeaseChange> {
    let [at, node, holder, epoch, until] = fields(line)?;
    let holder = Some(holder.to_owned()).filter(|holder| !holder.is_empty());
    let node = number_of(node).context("a node of the fleet")?;
    Ok(LeaseChange { at: at.parse()?, node, holder, epoch: epoch.parse()?, until: until.parse()? })
}

/// The writes of nodes, by controllers with these names.
///
/// # Errors
/// When what the server prints is not understood.
pub fn writes(server: &Server, database: &str, names: &BTreeMap<IpAddr, String>) -> Result<Vec<NodeWrite>> {
    let printed =
        server.sql(database, "SELECT at, node, client, holder, state FROM judge.written ORDER BY seq");
    printed.lines().map(|line| write(line, names).with_context(|| line.to_owned())).collect()
}

fn write(line: &str, names: &BTreeMap<IpAddr, String>) -> Result<NodeWrite> {
    let [at, node, client, holder, state] = fields(line)?;
    let by = names.get(&client.parse().context("the address of a controller")?);
    let by = by.context("a controller")?.clone();
    let holder = Some(holder.to_owned()).filter(|holder| !holder.is_empty());
    let node = number_of(node).context("a node of the fleet")?;
    Ok(NodeWrite { at: at.parse()?, node, by, holder, state: state.to_owned() })
}

/// The fields of a line that `psql -A -t` printed.
fn fields<const N: usize>(line: &str) -> Result<[&str; N]> {
    let fields: Vec<&str> = line.split('|').collect();
    fields.try_into().ok().with_context(|| format!("not {N} fields"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::uuid;

    #[test]
    fn what_psql_prints_is_read() {
        let node = uuid(7);
        let taken = lease(&format!("5|{node}|c1|3|17")).unwrap();
        assert_eq!(taken, LeaseChange { at: 5, node: 7, holder: Some("c1".into()), epoch: 3, until: 17 });
        assert_eq!(lease(&format!("5|{node}||3|17")).unwrap().holder, None);
        assert!(lease("5|x||3|17").is_err() && lease("5").is_err());
        let names = BTreeMap::from([([10, 99, 1, 2].into(), "c1".to_owned())]);
        let written = write(&format!("5|{node}|10.99.1.2|c2|cleaning"), &names).unwrap();
        assert_eq!((&written.by[..], written.holder.as_deref()), ("c1", Some("c2")));
        assert!(write(&format!("5|{node}|10.99.9.9|c2|cleaning"), &names).is_err());
    }
}
