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
	Kwok              = "kwok"
)

var (
	controlPlane = []string{Etcd, APIServer, ControllerManager, Scheduler}

	packages = map[string]string{
		Etcd:              "go.etcd.io/etcd/server/v3",
		APIServer:         "k8s.io/kubernetes/cmd/kube-apiserver",
		ControllerManager: "k8s.io/kubernetes/cmd/kube-controller-manager",
		Scheduler:         "k8s.io/kubernetes/cmd/kube-scheduler",
		Kubelet:           "k8s.io/kubernetes/cmd/kubelet",
		Kwok:              "sigs.k8s.io/kwok/cmd/kwok",
	}

	// modules hold what is built; kwok's has requirements of its own, which are
	// not the control plane's.
	modules = map[string]string{Kwok: filepath.Join("test", "kwok")}

	kubernetesVersion = regexp.MustCompile(`(?m)^\s*(?:require\s+)?k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)`)
)

// Build makes sure that the named components, by default those of the control
// plane, are there as their modules ask for them, and returns their folder.
// Only one process builds at a time; the others wait for it.
func Build(ctx context.Context, progress io.Writer, names ...string) (string, error) {
	if len(names) == 0 {
		names = controlPlane
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	b := &builder{bin: filepath.Join(root, ".cluster", "bin"), progress: progress}
	for _, name := range names {
		r, err := recipeFor(root, name)
		if err != nil {
			return "", err
		}
		b.recipes = append(b.recipes, r)
	}
	if len(b.outdated()) == 0 {
		return b.bin, nil
	}
	lock, err := flock.Acquire(ctx, filepath.Join(b.bin, ".lock"), func() {
		_, _ = fmt.Fprintln(progress, "waiting for another process that is building the control plane …")
	})
	if err != nil {
		return "", err
	}
	outdated := b.outdated()
	for i, r := range outdated {
		if err = b.build(ctx, r, i+1, len(outdated)); err != nil {
			break
		}
	}
	return b.bin, errors.Join(err, lock.Release())
}

// Version is the version of Kubernetes that the control plane's module asks for.
func Version() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	mod, err := os.ReadFile(filepath.Join(moduleDir(root), "go.mod"))
	if err != nil {
		return "", fmt.Errorf("read the control plane's module: %w", err)
	}
	found, err := findVersion(moduleDir(root), mod)
	if err != nil {
		return "", err
	}
	return found[0], nil
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
	bin      string
	recipes  []recipe
	progress io.Writer
}

// recipe is how a component is built: a package of a module, with these flags.
type recipe struct {
	name, module, pkg, ldflags string
	// stamp differs where anything of it does.
	stamp string
}

func recipeFor(root, name string) (recipe, error) {
	pkg, known := packages[name]
	if !known {
		return recipe{}, fmt.Errorf("build %s: there is no such component", name)
	}
	r := recipe{name: name, module: moduleDir(root), pkg: pkg, ldflags: "-s -w"}
	own, apart := modules[name]
	if apart {
		r.module = filepath.Join(root, own)
	}
	mod, err := os.ReadFile(filepath.Join(r.module, "go.mod"))
	if err != nil {
		return r, fmt.Errorf("read the module of %s: %w", name, err)
	}
	sum, err := os.ReadFile(filepath.Join(r.module, "go.sum"))
	if err != nil {
		return r, fmt.Errorf("read the module of %s: %w", name, err)
	}
	if !apart {
		found, err := findVersion(r.module, mod)
		if err != nil {
			return r, err
		}
		const stamped = "-X k8s.io/component-base/version."
		// Without a version stamped in, the API server calls itself v0.0.0-master, which clients cannot parse.
		r.ldflags += fmt.Sprintf(" %[1]sgitVersion=%[2]s %[1]sgitMajor=%[3]s %[1]sgitMinor=%[4]s", stamped, found[0], found[1], found[2])
	}
	r.stamp = fingerprint(mod, sum, []byte(r.ldflags), []byte(runtime.Version()+runtime.GOOS+runtime.GOARCH))
	return r, nil
}

// findVersion returns the version of Kubernetes that a go.mod asks for, whole,
// and its major and minor number.
func findVersion(module string, mod []byte) ([]string, error) {
	found := kubernetesVersion.FindStringSubmatch(string(mod))
	if found == nil {
		return nil, fmt.Errorf("%s/go.mod does not require k8s.io/kubernetes: restore that line", module)
	}
	return found[1:], nil
}

func fingerprint(parts ...[]byte) string {
	hash := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(hash, "%d:", len(part))
		_, _ = hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

func (b *builder) outdated() []recipe {
	var outdated []recipe
	for _, r := range b.recipes {
		stamp, err := os.ReadFile(b.stampPath(r.name))
		_, binErr := os.Stat(filepath.Join(b.bin, r.name))
		if err != nil || binErr != nil || string(stamp) != r.stamp {
			outdated = append(outdated, r)
		}
	}
	return outdated
}

func (b *builder) stampPath(name string) string {
	return filepath.Join(b.bin, "."+name+".stamp")
}

// build renames the binary into place, because the old one may be running.
func (b *builder) build(ctx context.Context, r recipe, index, count int) error {
	name := r.name
	_, _ = fmt.Fprintf(b.progress, "building %s (%d/%d), the first time takes minutes … ", name, index, count)
	began := time.Now()
	fresh := filepath.Join(b.bin, "."+name+".new")
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "build", "-C", r.module, "-mod=readonly", "-trimpath", "-buildvcs=false",
		"-ldflags", r.ldflags, "-o", fresh, r.pkg)
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
	if err := os.WriteFile(b.stampPath(name), []byte(r.stamp), 0o644); err != nil {
		return fmt.Errorf("note what %s was built from: %w", name, err)
	}
	_, _ = fmt.Fprintln(b.progress, time.Since(began).Round(time.Second))
	return nil
}
