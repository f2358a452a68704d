# Process 1 of a node: DIR KUBELET FLAGS of the kubelet. It has process ids and
# mounts of its own, so that all it starts and mounts ends with it. DIR holds
# the settings, the image and the logs.
set -eu
dir=$1 kubelet=$2
shift 2

mount -t proc proc /proc
# What containerd and the kubelet keep is gone with the mounts, and apart from
# what another containerd or kubelet of this machine keeps there.
for folder in /run/containerd /var/lib/containerd /var/lib/kubelet /var/log/containers /var/log/pods; do
  mkdir -p "$folder"
  mount -t tmpfs -o mode=755 tmpfs "$folder"
done

ended() {
  echo "containerd or the kubelet ended; their logs say last:"
  for log in containerd kubelet; do
    tail -n 4 "$dir/$log.log" || true
  done
  exit 1
}
trap ended TERM

(containerd --config "$dir/containerd.toml" >"$dir/containerd.log" 2>&1 || true; kill $$) &
until ctr version >/dev/null 2>&1; do
  sleep 0.1
done
ctr --namespace k8s.io images import "$dir/image.tar"
("$kubelet" "$@" >"$dir/kubelet.log" 2>&1 || true; kill $$) &
while true; do
  wait || true # orphans are waited for as well
done
