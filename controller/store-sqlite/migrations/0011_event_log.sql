-- The events of all nodes, in the order of their commits: one connection writes. They outlive their node.
-- AUTOINCREMENT: a number is never given twice, since clients keep it.
CREATE TABLE event_log (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    at    INTEGER NOT NULL,
    doc   TEXT NOT NULL CHECK (json_valid(doc))
) STRICT;
