package figures

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/headwater-k8s/headwater/test/process"
)

// Now describes a run that starts now and has no rows yet: of a verb of make,
// which passes args on by a variable.
func Now(verb, variable string, args []string) (Run, error) {
	load, err := process.LoadAverage()
	if err != nil {
		return Run{}, fmt.Errorf("describe the machine: %w", err)
	}
	commit, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return Run{}, fmt.Errorf("describe the commit: %w", err)
	}
	return Run{
		Command: command(verb, variable, args), Date: time.Now().Format(time.DateOnly), Commit: strings.TrimSpace(string(commit)),
		Machine: fmt.Sprintf("%d CPUs at a load average of %s at the start, %s", runtime.NumCPU(), load, runtime.Version()),
	}, nil
}

// command is how to do the same again; -figures only says where figures go, and
// -strict what a figure over its budget means.
func command(verb, variable string, args []string) string {
	var kept []string
	for i := 0; i < len(args); i++ {
		if strings.TrimLeft(args[i], "-") == "figures" {
			i++
			continue
		}
		if strings.TrimLeft(args[i], "-") != "strict=false" {
			kept = append(kept, args[i])
		}
	}
	if len(kept) == 0 {
		return verb
	}
	return fmt.Sprintf(`%s %s="%s"`, verb, variable, strings.Join(kept, " "))
}
