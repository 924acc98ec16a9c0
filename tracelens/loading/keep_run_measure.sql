-- One measure after the other: the lengths of all requests under it are held in memory while its quantiles are found.
CREATE TABLE _run_measure_row AS
FROM _run_measure
WHERE measure = 'ttft';

INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'tpot';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'e2e';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'client_wait';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'network_in';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'tokenize';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'step_wait';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'unaccounted';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'queue';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'kv_alloc';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'prefill';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'sample';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'stream_out';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'decode';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'wait, server';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'prefill, server';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'decode, server';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'first token, server';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'stay, server';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'wait, client';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'decode, client';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'first token, client';
INSERT INTO _run_measure_row FROM _run_measure WHERE measure = 'stay, client';
