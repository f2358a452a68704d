package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/headwater-k8s/headwater/test/cluster"
)

// Alone lets a process live through a gap in which it could not renew a lease.
const Alone = "--leader-elect=false"

// EveryDelete is a section that lets a rule of two clones lose both.
const EveryDelete = "safety: {maxDeleteFraction: 1}\n"

// ConfigFile writes a configuration of these rules, which top-level sections may
// follow, at once, so that nobody reads half of it. Rules of an earlier one that it does
// not have are gone on purpose.
func (e *Env) ConfigFile(rules string) string {
	e.Helper()
	file := filepath.Join(e.Dir, "headwater.yaml")
	var has struct{ Rules []struct{ Name string } }
	_ = yaml.Unmarshal([]byte("rules:\n"+rules), &has) // some are wrong on purpose
	removed := maps.Clone(e.ruled)
	for _, rule := range has.Rules {
		e.ruled[rule.Name] = true
		delete(removed, rule.Name)
	}
	sections := e.Sections
	if len(removed) > 0 {
		sections += "removedRules: [" + strings.Join(slices.Sorted(maps.Keys(removed)), ", ") + "]\n"
	}
	require.NoError(e, WriteConfig(file, sections+"rules:\n"+rules))
	return file
}

// Options run Headwater with these rules as its own service account.
func (e *Env) Options(rules string) Options {
	e.Helper()
	kubeconfig := filepath.Join(e.Dir, "kubeconfig")
	require.NoError(e, e.Cluster.KubeconfigFor(kubeconfig, ServiceAccount))
	e.runs++
	return Options{
		Binary: Binary(e.T), Config: e.ConfigFile(rules), Kubeconfig: kubeconfig,
		Webhook: e.Webhook, Dir: e.Dir, Name: fmt.Sprintf("headwater-%d", e.runs),
	}
}

// Proxy has o go to the API server by a way that can be broken.
func (e *Env) Proxy(o Options) *cluster.Proxy {
	e.Helper()
	proxy, err := e.Cluster.Proxy()
	require.NoError(e, err)
	e.Cleanup(proxy.Close)
	require.NoError(e, proxy.KubeconfigFor(o.Kubeconfig, ServiceAccount))
	return proxy
}

// Launch starts Headwater without waiting, and stops it with the test.
func (e *Env) Launch(o Options) *Headwater {
	e.Helper()
	h, err := Start(o)
	require.NoError(e, err)
	*e.launched = append(*e.launched, h)
	e.Cleanup(func() {
		log := stop(context.WithoutCancel(e.Context()), h)
		if e.Failed() {
			e.Logf("%s:\n%s", o.Name, tail(log, 60))
		}
	})
	return h
}

// Start starts Headwater with these rules and waits until it is ready and has
// worked off what it found.
func (e *Env) Start(rules string) *Headwater {
	e.Helper()
	h := e.Launch(e.Options(rules))
	require.NoError(e, h.Ready(e.Context()))
	return h
}

// StartAlone is Start without a lease, which would outlive a SIGKILL, and which
// the next test would have to wait for, too.
func (e *Env) StartAlone(rules string) *Headwater {
	e.Helper()
	o := e.Options(rules)
	o.Args = []string{Alone}
	h := e.Launch(o)
	require.NoError(e, h.Ready(e.Context()))
	return h
}

func tail(log string, lines int) string {
	all := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Command runs a command of Headwater as user, who has no permission but what
// the test gave them.
func (e *Env) Command(user string, args ...string) (stdout, stderr string, exit int) {
	e.Helper()
	kubeconfig := filepath.Join(e.Dir, user+".kubeconfig")
	require.NoError(e, e.Cluster.KubeconfigFor(kubeconfig, user))
	command := exec.CommandContext(e.Context(), Binary(e.T), append(args, "--kubeconfig", kubeconfig)...)
	var out, failure strings.Builder
	command.Stdout, command.Stderr = &out, &failure
	err := command.Run()
	if exited := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exited) {
		require.NoError(e, err)
	}
	Told("the output of headwater "+args[0], out.String()+failure.String())
	return out.String(), failure.String(), command.ProcessState.ExitCode()
}

// Answers runs a command, which must succeed, for its answer in JSON. Exit 2 is a success
// that needs attention.
func (e *Env) Answers(user string, answer any, args ...string) {
	e.Helper()
	out, problem, exit := e.Command(user, append(args, "-o", "json")...)
	require.Contains(e, []int{0, 2}, exit, problem)
	require.NoError(e, json.Unmarshal([]byte(out), answer))
}

// Status runs the command status for its answer in JSON, and returns how it
// exited: 0, or 2 when something needs attention.
func (e *Env) Status(user string, status any, args ...string) (exit int) {
	e.Helper()
	out, problem, exit := e.Command(user, append([]string{"status", "-o", "json"}, args...)...)
	require.Contains(e, []int{0, 2}, exit, problem)
	require.NoError(e, json.Unmarshal([]byte(out), status))
	return exit
}

// Rule has Secret shared of PREFIX-src for its source, and those sections.
func Rule(prefix string, sections ...string) string {
	source := fmt.Sprintf("source: {kind: Secret, namespace: %s-src, name: shared}", prefix)
	return "\n- name: " + strings.Join(append([]string{prefix, source}, sections...), "\n  ") + "\n"
}

// OneRule clones Secret shared from PREFIX-src to every namespace PREFIX-*.
func OneRule(prefix string) string {
	return Rule(prefix, `sync: {namespaces: {include: ["`+prefix+`-*"]}}`)
}

// Ends waits for the process to end by itself and returns what it printed
// last, which is what a person sees.
func Ends(t *testing.T, h *Headwater) string {
	t.Helper()
	select {
	case <-h.Done():
	case <-time.After(Timeout):
		require.FailNow(t, "headwater still runs")
	}
	require.NotZero(t, h.ExitCode(), "must exit non-zero")
	log, err := h.Log()
	require.NoError(t, err)
	require.NotContains(t, log, "goroutine ", "no stack trace")
	lines := strings.Split(strings.TrimSpace(log), "\n")
	begins := len(lines)
	for begins > 0 && !strings.HasPrefix(lines[begins-1], "{") { // unlike the lines of its log
		begins--
	}
	return strings.Join(lines[begins:], "\n")
}
