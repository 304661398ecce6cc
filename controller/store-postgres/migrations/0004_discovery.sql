-- Machines that were booted although no node is known for them.
CREATE TABLE discovered_machine (
    id        uuid PRIMARY KEY,
    booted_at bigint NOT NULL,
    doc       text NOT NULL
);
