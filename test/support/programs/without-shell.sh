# Runs a command in a root folder without any program but Node, as in a distroless image.
# Arguments: the new root folder, the path of Node, a folder that is /app in it, and the words behind /node.
set -e
root=$1 node=$2 app=$3
shift 3
mkdir -p "$root/app" "$root/proc" "$root/dev" "$root/tmp"
for folder in lib lib64 usr/lib usr/lib64; do
  if [ -L "/$folder" ]; then
    cp -P "/$folder" "$root/$folder"
  elif [ -d "/$folder" ]; then
    mkdir -p "$root/$folder"
    mount --rbind "/$folder" "$root/$folder"
  fi
done
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$app" "$root/app"
: >"$root/node"
mount --bind "$node" "$root/node"
exec chroot "$root" /node "$@"
