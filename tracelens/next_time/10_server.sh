# for: lifecycle, server times, cached tokens, engine steps, tokenize, step_wait, queue, prefill, decode
# The server's own record.  Start vLLM with these arguments as well; what each gives and costs:
@NOTES@
server_arguments=(
@ARGUMENTS@
)
