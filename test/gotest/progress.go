package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"gotest.tools/gotestsum/testjson"
)

// quiet is after how long without a line progress says what runs.
const quiet = 30 * time.Second

// progress prints how far go test is. It is a testjson.EventHandler.
type progress struct {
	out          io.Writer
	total, ended int
	verbose      bool
	began, said  time.Time
	// running are the tests that run, as PACKAGE TEST; not those that wait for others to end.
	running map[string]bool
	// inconclusive are the tests that could not tell, with what they said.
	inconclusive []string
}

func newProgress(out io.Writer, total int, verbose bool) *progress {
	return &progress{out: out, total: total, verbose: verbose, began: time.Now(), said: time.Now(), running: map[string]bool{}}
}

// Err prints a line that is no event. It is a testjson.EventHandler's.
func (p *progress) Err(line string) error { return p.say("%s\n", line) }

// Event prints what e is worth. It is a testjson.EventHandler's.
func (p *progress) Event(e testjson.TestEvent, _ *testjson.Execution) error {
	pkg := testjson.RelativePackagePath(e.Package)
	switch {
	case e.Action == testjson.ActionOutput:
		return p.output(e, pkg)
	case e.PackageEvent() && e.Action.IsTerminal():
		p.ended++
		if e.Action == testjson.ActionSkip {
			return nil // no tests
		}
		return p.say("%-4s %s  %.1f s  (%d of %d packages)\n", word(e.Action), pkg, e.Elapsed, p.ended, p.total)
	case strings.Contains(e.Test, "/") || e.Test == "":
		return nil
	case e.Action == testjson.ActionRun, e.Action == testjson.ActionCont:
		p.running[pkg+" "+e.Test] = true
	case e.Action == testjson.ActionPause:
		delete(p.running, pkg+" "+e.Test)
	case e.Action.IsTerminal():
		delete(p.running, pkg+" "+e.Test)
		if e.Action == testjson.ActionFail {
			return p.say("FAIL %s %s, after %.1f s; its log comes at the end\n", pkg, e.Test, e.Elapsed)
		}
	}
	if time.Since(p.said) < quiet {
		return nil
	}
	return p.say("…    %s: %d of %d packages, running %s\n",
		time.Since(p.began).Round(time.Second), p.ended, p.total, strings.Join(slices.Sorted(maps.Keys(p.running)), ", "))
}

// output keeps what an inconclusive test says, and prints everything if that is asked for.
func (p *progress) output(e testjson.TestEvent, pkg string) error {
	if _, why, found := strings.Cut(e.Output, "INCONCLUSIVE: "); found {
		p.inconclusive = append(p.inconclusive, fmt.Sprintf("%s %s: %s", pkg, e.Test, strings.TrimSpace(why)))
	}
	if p.verbose {
		return p.say("%s", e.Output)
	}
	return nil
}

func (p *progress) say(format string, args ...any) error {
	p.said = time.Now()
	_, err := fmt.Fprintf(p.out, format, args...)
	return err
}

func word(action testjson.Action) string {
	if action == testjson.ActionFail {
		return "FAIL"
	}
	return "ok"
}
