@CLIENT@trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
@SAY_ARGUMENTS@for loop in ${loops[@]+"${loops[@]}"}; do
  "$loop" &
  echo "running: $loop"
done
echo "afterwards: tracelens ingest $folder server.log --gpu-tz '$(date +%:z)'"
wait
