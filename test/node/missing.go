package node

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// debianPackages hold the programs of a node, by program.
var debianPackages = map[string]string{
	"containerd": "containerd", "ctr": "containerd", "runc": "runc", "busybox": "busybox-static",
}

// Missing is nil when this machine can run a node, and otherwise says what it
// lacks, and how to come by that.
func Missing() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("a node takes Linux, and this is %s", runtime.GOOS)
	}
	var packages []string
	for program, pkg := range debianPackages {
		if path, err := exec.LookPath(program); err != nil || program == "busybox" && !static(path) {
			packages = append(packages, pkg)
		}
	}
	slices.Sort(packages)
	packages = slices.Compact(packages)
	var lacks []error
	if len(packages) > 0 {
		lacks = append(lacks, fmt.Errorf("a node takes what this machine lacks; on Debian: apt-get install %s", strings.Join(packages, " ")))
	}
	if os.Geteuid() != 0 {
		lacks = append(lacks, errors.New("only root can run a node: run this as root"))
	}
	return errors.Join(lacks...)
}

// static reports whether a program needs no library, and so can be all there is
// in a container.
func static(path string) bool {
	program, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = program.Close() }()
	return !slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}
