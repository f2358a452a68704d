package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"github.com/headwater-k8s/headwater/test/cluster/internal/flock"
	"github.com/headwater-k8s/headwater/test/process"
)

// The components, as Build, Options.Args and PIDs name them.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubelet           = "kubelet"
)

var (
	controlPlane = []string{Etcd, APIServer, ControllerManager, Scheduler}

	packages = map[string]string{
		Etcd:              "go.etcd.io/etcd/server/v3",
		APIServer:         "k8s.io/kubernetes/cmd/kube-apiserver",
		ControllerManager: "k8s.io/kubernetes/cmd/kube-controller-manager",
		Scheduler:         "k8s.io/kubernetes/cmd/kube-scheduler",
		Kubelet:           "k8s.io/kubernetes/cmd/kubelet",
	}

	kubernetesVersion = regexp.MustCompile(`(?m)^\s*(?:require\s+)?k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)`)
)

// Build makes sure that the named components, by default those of the control
// plane, are there as their module asks for them, and returns their folder.
// Only one process builds at a time; the others wait for it.
func Build(ctx context.Context, progress io.Writer, names ...string) (string, error) {
	if len(names) == 0 {
		names = controlPlane
	}
	b, err := newBuilder(progress)
	if err != nil {
		return "", err
	}
	if len(b.outdated(names)) == 0 {
		return b.bin, nil
	}
	lock, err := flock.Acquire(ctx, filepath.Join(b.bin, ".lock"), func() {
		_, _ = fmt.Fprintln(progress, "waiting for another process that is building the control plane …")
	})
	if err != nil {
		return "", err
	}
	outdated := b.outdated(names)
	for i, name := range outdated {
		if err = b.build(ctx, name, i+1, len(outdated)); err != nil {
			break
		}
	}
	return b.bin, errors.Join(err, lock.Release())
}

// Version is the version of Kubernetes that the control plane's module asks for.
func Version() (string, error) {
	b, err := newBuilder(io.Discard)
	if err != nil {
		return "", err
	}
	return b.version, nil
}

// Root is the folder of the checkout that the working directory is in.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(moduleDir(dir), "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no checkout of headwater here: run this inside one, the control plane is built from it")
		}
		dir = parent
	}
}

func moduleDir(root string) string {
	return filepath.Join(root, "test", "cluster", "controlplane")
}

type builder struct {
	module   string
	bin      string
	version  string
	ldflags  string
	stamp    string
	progress io.Writer
}

func newBuilder(progress io.Writer) (*builder, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	b := &builder{module: moduleDir(root), bin: filepath.Join(root, ".cluster", "bin"), progress: progress}
	mod, err := os.ReadFile(filepath.Join(b.module, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("read the control plane's module: %w", err)
	}
	sum, err := os.ReadFile(filepath.Join(b.module, "go.sum"))
	if err != nil {
		return nil, fmt.Errorf("read the control plane's module: %w", err)
	}
	found := kubernetesVersion.FindSubmatch(mod)
	if found == nil {
		return nil, fmt.Errorf("%s/go.mod does not require k8s.io/kubernetes: restore that line", b.module)
	}
	const stamped = "-X k8s.io/component-base/version."
	b.version = string(found[1])
	// Without a version stamped in, the API server calls itself v0.0.0-master, which clients cannot parse.
	b.ldflags = fmt.Sprintf("-s -w %[1]sgitVersion=%[2]s %[1]sgitMajor=%[3]s %[1]sgitMinor=%[4]s",
		stamped, found[1], found[2], found[3])
	b.stamp = fingerprint(mod, sum, []byte(b.ldflags), []byte(runtime.Version()+runtime.GOOS+runtime.GOARCH))
	return b, nil
}

func fingerprint(parts ...[]byte) string {
	hash := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(hash, "%d:", len(part))
		_, _ = hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

func (b *builder) outdated(names []string) []string {
	var outdated []string
	for _, name := range names {
		stamp, err := os.ReadFile(b.stampPath(name))
		_, binErr := os.Stat(filepath.Join(b.bin, name))
		if err != nil || binErr != nil || string(stamp) != b.stamp {
			outdated = append(outdated, name)
		}
	}
	return outdated
}

func (b *builder) stampPath(name string) string {
	return filepath.Join(b.bin, "."+name+".stamp")
}

// build renames the binary into place, because the old one may be running.
func (b *builder) build(ctx context.Context, name string, index, count int) error {
	pkg, known := packages[name]
	if !known {
		return fmt.Errorf("build %s: there is no such component", name)
	}
	_, _ = fmt.Fprintf(b.progress, "building %s (%d/%d), the first time takes minutes … ", name, index, count)
	began := time.Now()
	fresh := filepath.Join(b.bin, "."+name+".new")
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "build", "-C", b.module, "-mod=readonly", "-trimpath", "-buildvcs=false",
		"-ldflags", b.ldflags, "-o", fresh, pkg)
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		_, _ = fmt.Fprintln(b.progress, "failed")
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		if output.Len() == 0 {
			return fmt.Errorf("build %s: %w", name, err)
		}
		return fmt.Errorf("build %s: %w; it says last:\n%s", name, err, process.LastLines(output.Bytes()))
	}
	if err := os.Rename(fresh, filepath.Join(b.bin, name)); err != nil {
		return fmt.Errorf("put %s in place: %w", name, err)
	}
	if err := os.WriteFile(b.stampPath(name), []byte(b.stamp), 0o644); err != nil {
		return fmt.Errorf("note what %s was built from: %w", name, err)
	}
	_, _ = fmt.Fprintln(b.progress, time.Since(began).Round(time.Second))
	return nil
}
