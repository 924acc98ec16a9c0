CREATE TYPE provenance AS ENUM('observed', 'derived', 'within', 'unknown');
COMMENT ON TYPE provenance IS 'How a stage is known. observed: a source states it, or both its ends on one clock. derived: it took a subtraction, a second clock or an assumption. within: not separable, its time is inside another stage. unknown: nobody measured it.';

CREATE TYPE request_status AS ENUM('ok', 'error', 'aborted', 'rejected', 'unknown');
COMMENT ON TYPE request_status IS 'How a request ended. rejected: refused before it reached the engine (HTTP 4xx, 503). aborted: the client or a proxy went away, or gave up waiting.';

CREATE TYPE event_kind AS ENUM('received', 'added', 'scheduled', 'preempted', 'first_token', 'finished', 'aborted', 'failed');
COMMENT ON TYPE event_kind IS 'What happened to a request, in the order of its life.';
