#!/usr/bin/env bash
# Builds what kubernetes.test.ts starts: kube-apiserver and etcd, from the Go module proxy, into .servers of this folder. Takes
# 10 to 40 minutes on two cores and 4 GB of disk in the caches of Go; nothing is built when the binaries are there.
set -euo pipefail
cd "$(dirname "$0")"
version=1.36.3
servers="$PWD/.servers"
[ -x "$servers/kube-apiserver" ] && [ -x "$servers/etcd" ] && exit 0

module=$(mktemp -d)
trap 'rm -rf "$module"' EXIT
cd "$module"
go mod init servers
# As a dependency, Kubernetes loses the replacements of its own module: its libraries have versions of their own.
go mod edit -require="k8s.io/kubernetes@v$version"
definition=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
while read -r library; do
  go mod edit -replace="$library=$library@v0.${version#1.}"
done < <(sed -n 's|^[[:space:]]*\(k8s.io/[^ ]*\) => ./staging/.*|\1|p' "$definition")

flags="-s -w -X k8s.io/component-base/version.gitVersion=v$version"
flags="$flags -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
mkdir -p "$servers"
go build -mod=mod -ldflags "$flags" -o "$servers/" k8s.io/kubernetes/cmd/kube-apiserver
go build -mod=mod -ldflags '-s -w' -o "$servers/etcd" go.etcd.io/etcd/server/v3
