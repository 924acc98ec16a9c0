# for: queue length, KV cache, prefix cache, settings
# Stats lines and settings stand in the server log from its first line on, unless something takes them away:
# --disable-log-stats, VLLM_LOGGING_LEVEL above INFO, or --api-server-count above 1.  Keep the whole log, also after a restart:
#   vllm serve ... 2>&1 | tee -a server.log        or        kubectl logs --timestamps POD > server.log
