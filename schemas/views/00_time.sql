-- A stamp some seconds later; NULL where the seconds are no length that a log could mean (inf, NaN, centuries).
CREATE MACRO _later(stamp, length_s) AS
CASE WHEN abs(length_s) < 1e10 THEN stamp + to_microseconds((length_s * 1e6)::BIGINT) END;
