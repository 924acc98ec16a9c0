CREATE VIEW _prompt_note AS
SELECT
    run_id,
    source_id,
    line_no,
    try_cast(coalesce(
        json_extract_string(other, '$.system_len'),
        json_extract_string(other, '$.system_chars'),
        json_extract_string(other, '$.system_prompt_len'),
        json_extract_string(other, '$.system_prompt_chars')
    ) AS DOUBLE) AS system_char_count,
    coalesce(
        json_extract_string(other, '$.system_hash'),
        json_extract_string(other, '$.system_sha256'),
        json_extract_string(other, '$.system_prompt_hash'),
        json_extract_string(other, '$.prefix_hash')
    ) AS beginning_hash,
    coalesce(json_extract_string(other, '$.turn'), json_extract_string(other, '$.round')) AS turn
FROM client_request
-- Reading JSON takes long: only where one of the keys can be in it.
WHERE contains(other, 'system_') OR contains(other, 'prefix_hash') OR contains(other, '"turn"') OR contains(other, '"round"');

COMMENT ON VIEW _prompt_note IS 'One row per client request whose client noted something of its prompt: the length of its system prompt (characters), a hash of its beginning, the turn of its conversation.';

CREATE VIEW _logged_request_count AS
SELECT
    run_id,
    coalesce(nullif(sum(received_count), 0), sum(answered_count)) AS request_count
FROM (
    SELECT
        run_id,
        count(*) AS received_count,
        0 AS answered_count
    FROM request_event
    WHERE event = 'received'
    GROUP BY run_id
    UNION ALL
    SELECT
        run_id,
        0 AS received_count,
        count(*) AS answered_count
    FROM access_line
    WHERE method = 'POST' AND status = 200
    GROUP BY run_id
)
GROUP BY run_id;

COMMENT ON VIEW _logged_request_count IS 'One row per run: requests that the server''s log shows received, else answered.';
