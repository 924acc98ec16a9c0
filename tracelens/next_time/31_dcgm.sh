# for: GPU memory traffic, GPU tensor cores
# What the GPU's parts did: SM, tensor cores and memory traffic.  Utilisation alone cannot tell work from waiting for memory.
# Needs DCGM (nv-hostengine); on Hopper and later nvidia-smi dmon --gpm-metrics=2,3,5,10 shows the same without it.
watch_dcgm() {
  dcgmi dmon -e 1001,1002,1003,1004,1005,155,203 -d 1000 | while IFS= read -r line; do
    printf '%s %s\n' "$(date -u +%s)" "$line"
  done >> "$folder/dcgmi_dmon.log"
}
if command -v dcgmi > /dev/null; then loops+=(watch_dcgm); else echo "no dcgmi here: memory traffic and tensor cores are not recorded" >&2; fi
