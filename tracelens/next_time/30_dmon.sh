# for: GPU busy, GPU power, GPU clocks
# Utilisation, power, clocks, throttling, memory and PCIe of every GPU, once a second, with date and time.
watch_gpus() {
  nvidia-smi dmon -s pucvmet -o DT -d 1 >> "$folder/gpu_dmon.log"
}
if command -v nvidia-smi > /dev/null; then loops+=(watch_gpus); else echo "no nvidia-smi here: the GPUs are not recorded" >&2; fi
