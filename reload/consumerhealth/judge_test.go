package consumerhealth_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/reload/consumerhealth"
	"github.com/headwater-k8s/headwater/reload/internal/reloadtest"
	"github.com/headwater-k8s/headwater/reload/kinds"
	"github.com/headwater-k8s/headwater/reload/workload"
)

// The clone was written an hour after reloadtest.Birth, when its consumers were created. It
// is judged ten minutes later.
var (
	written = reloadtest.Birth.Add(time.Hour)
	now     = written.Add(10 * time.Minute)
)

type change func(*consumerhealth.Consumer)

// web is a Deployment of two replicas that reads the clone at its start.
func web(changes ...change) consumerhealth.Consumer {
	c := consumerhealth.Consumer{
		Name: "team/Deployment/web", UID: "web", CreatedAt: reloadtest.Birth, Restarts: true,
		Workload: &workload.Workload{Kind: kinds.KindDeployment, Stamp: 1, Rollout: &workload.Rollout{Replicas: 2, Updated: 2, Available: 2}},
	}
	for _, change := range changes {
		change(&c)
	}
	return c
}

func mounts(c *consumerhealth.Consumer) { c.Restarts = false }

func created(after time.Duration) change {
	return func(c *consumerhealth.Consumer) { c.CreatedAt = written.Add(after) }
}

func rollout(set func(*workload.Rollout)) change {
	return func(c *consumerhealth.Consumer) { set(c.Workload.Rollout) }
}

func edited(after time.Duration) change {
	return func(c *consumerhealth.Consumer) { c.Workload.EditedAt = uint32(written.Add(after).Unix()) }
}

func starting(r *workload.Rollout) { r.Available = 0 }

type podChange func(*consumerhealth.Pod)

// with adds a ready pod, which does not have what the clone holds.
func with(name string, changes ...podChange) change {
	return func(c *consumerhealth.Consumer) {
		pod := consumerhealth.Pod{Pod: &workload.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Bound: true, Readiness: workload.Ready}}
		for _, change := range changes {
			change(&pod)
		}
		c.Pods = append(c.Pods, pod)
	}
}

func started(p *consumerhealth.Pod)  { p.Started = true }
func shows(p *consumerhealth.Pod)    { p.Shows = true }
func notReady(p *consumerhealth.Pod) { p.Readiness = workload.NotReady }
func nodeLost(p *consumerhealth.Pod) { p.Readiness = workload.NodeLost }
func ofJob(p *consumerhealth.Pod)    { p.OwnerKind = kinds.KindJob }

func waits(reason string) podChange {
	return func(p *consumerhealth.Pod) { p.Trouble = workload.TroubleOf(reason) }
}

func crashed(times uint16) podChange { return func(p *consumerhealth.Pod) { p.Crashes = times } }

func TestWhatAConsumerShowsOfTheRevision(t *testing.T) {
	type look struct {
		at time.Duration // after now
		c  consumerhealth.Consumer
	}
	looks := func(all ...look) []look { return all }
	paused := rollout(func(r *workload.Rollout) { r.Paused = true })
	none := rollout(func(r *workload.Rollout) { r.Replicas, r.Updated, r.Available = 0, 0, 0 })
	held := rollout(func(r *workload.Rollout) { r.Partitioned = 2 })
	partly := rollout(func(r *workload.Rollout) { r.Partitioned = 1 })
	excluded := func(c *consumerhealth.Consumer) { c.Excluded = true }
	settled := func(c *consumerhealth.Consumer) { c.Settled = true }
	paced := func(c *consumerhealth.Consumer) { c.Waits, c.Paced = "window", true }
	bare := func(c *consumerhealth.Consumer) { c.Workload = nil }
	unknown := func(c *consumerhealth.Consumer) { c.Workload.Rollout = nil }
	cronJob := func(c *consumerhealth.Consumer) { c.Workload = &workload.Workload{Kind: kinds.KindCronJob} }
	lacksKey := func(c *consumerhealth.Consumer) { c.LacksKey = true }
	pending := func(p *consumerhealth.Pod) { p.Phase = corev1.PodPending }
	other := func(p *consumerhealth.Pod) { p.Other = true }
	old := func(p *consumerhealth.Pod) { p.Name, p.Revision = "db-0", 1; notReady(p) }
	set := rollout(func(r *workload.Rollout) { r.Ordered, r.Update, r.Updated, r.Old, r.Available = true, 2, 0, 2, 1 })
	const crashLoop, noImage, noConfig = "CrashLoopBackOff", "ErrImagePull", "CreateContainerConfigError"
	for sentence, test := range map[string]struct {
		looks     []look
		before    revisions.Condition
		anyHealth bool
		want      consumerhealth.State
		reason    string
		pod       string // that the set waits for
		unclear   bool
		paced     bool
		fails     bool // without counting against the revision
	}{
		"a ready pod started with it":                         {looks: looks(look{0, web(with("a", started))}), want: consumerhealth.Ran},
		"one of two ready pods did":                           {looks: looks(look{0, web(with("a", started), with("b"))}), want: consumerhealth.Ran},
		"no pod is known to have":                             {looks: looks(look{0, web(with("a"), with("b"))}), want: consumerhealth.Waiting, reason: "Restarting", unclear: true},
		"it has no pod at all":                                {looks: looks(look{0, web()}), want: consumerhealth.Waiting, reason: "Restarting", unclear: true},
		"its pod started with it and is not ready":            {looks: looks(look{0, web(rollout(starting), with("a", started, notReady))}), want: consumerhealth.Waiting, reason: "Restarting"},
		"that is enough if any health will do":                {looks: looks(look{0, web(with("a", started, notReady, waits(crashLoop)))}), anyHealth: true, want: consumerhealth.Ran},
		"a pod that is stamped for another revision fails":    {looks: looks(look{0, web(with("a", other, notReady, waits(crashLoop)))}), want: consumerhealth.Waiting, reason: "Restarting", unclear: true, fails: true},
		"its set waits for such a pod":                        {looks: looks(look{0, web(set, with("a", other, waits(crashLoop), old))}), want: consumerhealth.Waiting, reason: "Standing", pod: "db-0", unclear: true, fails: true},
		"it waits for one of which nothing says what it runs": {looks: looks(look{0, web(set, with("a", waits(crashLoop), old))}), want: consumerhealth.Waiting, reason: "Standing", pod: "db-0", unclear: true, fails: true},
		"a pod has it, and its set waits for an older one":    {looks: looks(look{0, web(set, with("db-1", started, notReady, func(p *consumerhealth.Pod) { p.Phase = corev1.PodRunning }), with("db-0", old))}), want: consumerhealth.Waiting, reason: "Restarting"},
		"its restart waits as well":                           {looks: looks(look{0, web(set, paced, with("a", other), with("db-0", old))}), want: consumerhealth.Waiting, reason: "window", paced: true},
		"files that show it are not enough for what reads it": {looks: looks(look{0, web(with("a", shows))}), want: consumerhealth.Waiting, reason: "Restarting"},
		"files of every pod show it":                          {looks: looks(look{0, web(mounts, with("a", shows), with("b", shows))}), want: consumerhealth.Refreshed},
		"files of one pod do not":                             {looks: looks(look{0, web(mounts, with("a", shows), with("b"))}), want: consumerhealth.Waiting, reason: "Refreshing"},
		"files show it, and a new pod started with it":        {looks: looks(look{0, web(mounts, with("a", shows), with("b", started))}), want: consumerhealth.Ran},
		"files show it, and one pod of two is not ready":      {looks: looks(look{0, web(mounts, with("a", shows), with("b", shows, notReady))}), want: consumerhealth.Refreshed},
		"files show it, and no pod is ready":                  {looks: looks(look{0, web(mounts, with("a", shows, notReady))}), want: consumerhealth.Waiting, reason: "Refreshing"},

		"paused":                                {looks: looks(look{0, web(paused, with("a"))}), want: consumerhealth.Idle},
		"without replicas":                      {looks: looks(look{0, web(none)}), want: consumerhealth.Idle},
		"held by a partition":                   {looks: looks(look{0, web(held, with("a"))}), want: consumerhealth.Idle},
		"held by a partition in part":           {looks: looks(look{0, web(partly, with("a"))}), want: consumerhealth.Waiting, reason: "Restarting", unclear: true},
		"excluded by its owner":                 {looks: looks(look{0, web(excluded, with("a", started))}), want: consumerhealth.Idle},
		"a CronJob":                             {looks: looks(look{0, web(cronJob, with("a", started, waits(crashLoop)))}), want: consumerhealth.Idle},
		"the pod of a Job":                      {looks: looks(look{0, web(bare, mounts, with("a", shows, ofJob))}), want: consumerhealth.Idle},
		"paused, but only mounting it":          {looks: looks(look{0, web(paused, mounts, with("a", shows))}), want: consumerhealth.Refreshed},
		"paused, and mounting it without a pod": {looks: looks(look{0, web(paused, mounts)}), want: consumerhealth.Idle},

		"a pod with it crashes":                         {looks: looks(look{0, web(with("a"), with("b", started, waits(crashLoop)))}), want: consumerhealth.Failing, reason: crashLoop},
		"a pod crashes that does not have it":           {looks: looks(look{0, web(with("a", waits(crashLoop)))}), want: consumerhealth.Waiting, reason: "Restarting", fails: true},
		"a pod whose files show it crashes":             {looks: looks(look{0, web(mounts, with("a", shows, waits(crashLoop)), with("b", shows))}), want: consumerhealth.Failing, reason: crashLoop},
		"a pod with it crashes, of one that is paused":  {looks: looks(look{0, web(paused, with("a", started, waits(crashLoop)))}), want: consumerhealth.Failing, reason: crashLoop},
		"it crashed twice and runs":                     {looks: looks(look{0, web(with("a", started, crashed(2)))}), want: consumerhealth.Failing, reason: crashLoop},
		"it crashed once":                               {looks: looks(look{0, web(with("a", started, crashed(1)))}), want: consumerhealth.Ran},
		"it crashed, and has run for long since":        {looks: looks(look{0, web(with("a", started, crashed(2)))}, look{6 * time.Minute, web(with("a", started, crashed(2)))}), want: consumerhealth.Ran},
		"it crashed twice before its files showed it":   {looks: looks(look{0, web(mounts, with("a", shows, crashed(2)))}), want: consumerhealth.Refreshed},
		"it crashed twice more since":                   {looks: looks(look{0, web(mounts, with("a", shows, crashed(2)))}, look{time.Minute, web(mounts, with("a", shows, crashed(4)))}), want: consumerhealth.Failing, reason: crashLoop},
		"its pod was replaced, and the new one crashes": {looks: looks(look{0, web(mounts, with("a", shows))}, look{11 * time.Minute, web(mounts, with("b", started, waits(crashLoop)))}), want: consumerhealth.Failing, reason: crashLoop},

		"its pod is not scheduled, or lacks another volume": {looks: looks(look{0, web(with("a", started, notReady, pending))}), want: consumerhealth.Waiting, reason: "Restarting", unclear: true},
		"an init container runs with it":                    {looks: looks(look{0, web(with("a", started, notReady, pending, func(p *consumerhealth.Pod) { p.StartedAt = 1 }))}), want: consumerhealth.Waiting, reason: "Restarting"},
		"its restart waits for another missing object":      {looks: looks(look{0, web(with("a"), func(c *consumerhealth.Consumer) { c.Waits = "missing" })}), want: consumerhealth.Waiting, reason: "missing", unclear: true},
		"its restart waits for a key that the clone lacks":  {looks: looks(look{0, web(with("a"), lacksKey, func(c *consumerhealth.Consumer) { c.Waits = "missing" })}), want: consumerhealth.Waiting, reason: "missing"},
		"a container lacks another object":                  {looks: looks(look{0, web(with("a", started, notReady, pending, waits(noConfig)))}), want: consumerhealth.Waiting, reason: noConfig, unclear: true, fails: true},
		"a container lacks a key of it":                     {looks: looks(look{0, web(lacksKey, with("a", started, notReady, pending, waits(noConfig)))}), want: consumerhealth.Failing, reason: noConfig},
		"one pod lacks another object, and another crashes": {looks: looks(look{0, web(with("a", started, notReady, waits(noConfig)), with("b", started, notReady, waits(crashLoop)))}), want: consumerhealth.Failing, reason: crashLoop},
		"an older pod lacks another object":                 {looks: looks(look{0, web(with("a", notReady, pending, waits(noConfig)))}), want: consumerhealth.Waiting, reason: "Restarting", unclear: true, fails: true},

		"it ran once, and its new pod is not ready":               {looks: looks(look{0, web(with("a", started))}, look{time.Minute, web(with("b", started, notReady))}), want: consumerhealth.Ran},
		"it ran once, and was created again":                      {looks: looks(look{0, web(with("a", started))}, look{time.Minute, web(func(c *consumerhealth.Consumer) { c.UID = "other" }, with("b", started, notReady))}), want: consumerhealth.Waiting, reason: "Restarting"},
		"a readiness that may return":                             {looks: looks(look{0, web(with("a", started))}, look{time.Minute, web(with("a", started, notReady))}, look{time.Minute + 29*time.Second, web(with("a", started, notReady))}), want: consumerhealth.Waiting, reason: "Restarting"},
		"a readiness that returned":                               {looks: looks(look{0, web(with("a", started))}, look{time.Minute, web(with("a", started, notReady))}, look{time.Minute + 29*time.Second, web(with("a", started))}), want: consumerhealth.Ran},
		"it ran for a moment, and crashed once":                   {looks: looks(look{0, web(with("a", started))}, look{time.Second, web(with("a", started, notReady, crashed(1)))}), want: consumerhealth.Waiting, reason: "Restarting"},
		"its new pod crashed once, another is ready":              {looks: looks(look{0, web(with("a", started), with("b", started, notReady, crashed(1)))}), want: consumerhealth.Waiting, reason: "Restarting"},
		"one that does not":                                       {looks: looks(look{0, web(with("a", started))}, look{time.Minute, web(with("a", started, notReady))}, look{time.Minute + 30*time.Second, web(with("a", started, notReady))}), want: consumerhealth.Failing, reason: "NotReady"},
		"one that was never there is waited for":                  {looks: looks(look{0, web(with("a", started, notReady))}, look{time.Hour, web(with("a", started, notReady))}), want: consumerhealth.Waiting, reason: "Restarting"},
		"a node that is lost":                                     {looks: looks(look{0, web(with("a", started, nodeLost))}), want: consumerhealth.Excused},
		"a node that is lost for long":                            {looks: looks(look{0, web(with("a", started))}, look{time.Hour, web(with("a", started, nodeLost))}), want: consumerhealth.Ran},
		"an image that cannot be pulled":                          {looks: looks(look{0, web(with("a", started, waits(noImage)))}), want: consumerhealth.Waiting, reason: "ImagePullBackOff", unclear: true, fails: true},
		"another pod without its image crashes":                   {looks: looks(look{0, web(with("a", started, waits(noImage)), with("b", started, waits(crashLoop)))}), want: consumerhealth.Failing, reason: crashLoop},
		"an image that somebody else set":                         {looks: looks(look{0, web(edited(0), with("a", started, waits(noImage)))}), want: consumerhealth.Excused},
		"an image that somebody set long before":                  {looks: looks(look{0, web(edited(-time.Hour), with("a", started, waits(noImage)))}), want: consumerhealth.Waiting, reason: "ImagePullBackOff", unclear: true, fails: true},
		"an image that somebody set before the clone was written": {looks: looks(look{0, web(edited(-time.Second), with("a", started, waits(noImage)))}), want: consumerhealth.Excused},

		"failing before":                              {looks: looks(look{0, web(with("a"))}), before: revisions.Failing, want: consumerhealth.Excused},
		"failing before and with it":                  {looks: looks(look{0, web(with("a", started, waits(crashLoop)))}), before: revisions.Failing, want: consumerhealth.Excused},
		"failing before, and healthy with it":         {looks: looks(look{0, web(with("a", started))}), before: revisions.Failing, want: consumerhealth.Ran},
		"failing in part before, and as it was":       {looks: looks(look{0, web(with("a", started), with("b", started, waits(crashLoop)))}), before: revisions.Partly, want: consumerhealth.Ran},
		"failing in part before, and starting":        {looks: looks(look{0, web(with("a"), with("b", started, notReady))}), before: revisions.Partly, want: consumerhealth.Waiting, reason: "Rolling", unclear: true},
		"failing in part before, and nothing runs it": {looks: looks(look{0, web(with("a", started, notReady, waits(crashLoop)), with("b", started, notReady, waits(crashLoop)))}), before: revisions.Partly, want: consumerhealth.Waiting, reason: crashLoop, unclear: true, fails: true},
		"rolling before":                              {looks: looks(look{0, web(with("a"))}), before: revisions.Rolling, want: consumerhealth.Waiting, reason: "Rolling", unclear: true},
		"rolling before, and failing with it":         {looks: looks(look{0, web(with("a", started, waits(crashLoop)))}), before: revisions.Rolling, want: consumerhealth.Waiting, reason: crashLoop, unclear: true, fails: true},
		"hanging before, and so with it":              {looks: looks(look{0, web(with("a", started, notReady))}), before: revisions.Hanging, want: consumerhealth.Waiting, reason: "NotReadyBefore", unclear: true},
		"hanging before, and it crashes with it":      {looks: looks(look{0, web(with("a", started, waits(crashLoop)))}), before: revisions.Hanging, want: consumerhealth.Failing, reason: crashLoop, pod: "a"},
		"hanging before, and healthy with it":         {looks: looks(look{0, web(with("a", started))}), before: revisions.Hanging, want: consumerhealth.Ran},
		"rolling before, and healthy with it":         {looks: looks(look{0, web(with("a", started))}), before: revisions.Rolling, want: consumerhealth.Ran},
		"somebody changed its template since":         {looks: looks(look{0, web(edited(0), with("a"))}), want: consumerhealth.Waiting, reason: "TemplateEdited", unclear: true},
		"somebody did, and a pod crashes with it":     {looks: looks(look{0, web(edited(0), with("a", started, waits(crashLoop)))}), want: consumerhealth.Failing, reason: crashLoop},
		"it waits for its window":                     {looks: looks(look{0, web(paced, with("a"))}), want: consumerhealth.Waiting, reason: "window", paced: true},
		"nothing is left to do, and nothing is known": {looks: looks(look{0, web(settled, with("a"))}), want: consumerhealth.Waiting, reason: "Unknown", unclear: true},
		"nothing shows whether it has replicas":       {looks: looks(look{0, web(settled, unknown)}), want: consumerhealth.Waiting, reason: "Unknown", unclear: true},
		"nothing does, and it only mounts it":         {looks: looks(look{0, web(settled, unknown, mounts)}), want: consumerhealth.Waiting, reason: "Unknown", unclear: true},
		"nothing does, and it has older pods":         {looks: looks(look{0, web(settled, unknown, with("a"))}), want: consumerhealth.Waiting, reason: "Restarting", unclear: true},
		"nothing is left to do, and its pod starts":   {looks: looks(look{0, web(settled, with("a", started, notReady))}), want: consumerhealth.Waiting, reason: "Restarting"},

		"created after the stage opened, and healthy":       {looks: looks(look{0, web(created(time.Second), with("a", started))}), want: consumerhealth.Ran},
		"created after it, and starting":                    {looks: looks(look{0, web(created(time.Second), with("a", started, notReady))}), want: consumerhealth.Idle},
		"created after it, and failing":                     {looks: looks(look{0, web(created(time.Second), with("a", started, waits(crashLoop)))}), want: consumerhealth.Idle, fails: true},
		"created after it, and failing with who knows what": {looks: looks(look{0, web(created(time.Second), with("a", waits(crashLoop)))}), want: consumerhealth.Idle, fails: true},
		"paused, and failing with who knows what":           {looks: looks(look{0, web(paused, with("a", waits(crashLoop)))}), want: consumerhealth.Idle, fails: true},
		"failing before, and still with what it had":        {looks: looks(look{0, web(with("a", waits(crashLoop)))}), before: revisions.Failing, want: consumerhealth.Excused},
		"created in the second of the write":                {looks: looks(look{0, web(created(0), with("a", started, waits(crashLoop)))}), want: consumerhealth.Failing, reason: crashLoop},
	} {
		t.Run(sentence, func(t *testing.T) {
			var past consumerhealth.Past
			var is consumerhealth.Result
			for _, look := range test.looks {
				is, past = consumerhealth.Judge(look.c, past, consumerhealth.Input{Recorded: written.Add(-time.Minute), Written: written, Before: test.before, AnyHealth: test.anyHealth, Now: now.Add(look.at)})
			}
			require.Equal(t, test.want, is.State)
			require.Equal(t, test.fails, is.Fails)
			require.Equal(t, [2]bool{test.unclear, test.paced}, [2]bool{is.Unclear, is.Paced})
			if is.State == consumerhealth.Waiting || is.State == consumerhealth.Failing {
				require.Equal(t, test.reason, is.Reason)
			}
			if is.State == consumerhealth.Waiting && is.Reason == "Standing" {
				require.Equal(t, test.pod, is.Pod)
			}
		})
	}
}

func TestAYoungPodCountsAgainstTheRevisionOnlyIfItReplacesAnother(t *testing.T) {
	in := consumerhealth.Input{Recorded: written.Add(-time.Minute), Written: written, Now: now}
	young := func(replaces bool, change ...podChange) consumerhealth.Consumer {
		c := web(with("a", append(change, started)...))
		c.Workload, c.Excluded, c.Controller, c.Replaces, c.CreatedAt = nil, true, "operator", replaces, written.Add(time.Second)
		return c
	}
	for sentence, test := range map[string]struct {
		c    consumerhealth.Consumer
		want consumerhealth.State
	}{
		"a new one fails":                  {young(false, notReady, waits("CrashLoopBackOff")), consumerhealth.Idle},
		"one that replaces another fails":  {young(true, notReady, waits("CrashLoopBackOff")), consumerhealth.Failing},
		"it is not ready yet":              {young(true, notReady), consumerhealth.Idle},
		"it is ready":                      {young(true), consumerhealth.Ran},
		"a new one that is ready does too": {young(false), consumerhealth.Ran},
	} {
		t.Run(sentence, func(t *testing.T) {
			is, _ := consumerhealth.Judge(test.c, consumerhealth.Past{}, in)
			require.Equal(t, test.want, is.State)
		})
	}
}

func TestARefreshProvesNothingInAStageThatRestarts(t *testing.T) {
	readers := []consumerhealth.Result{{State: consumerhealth.Refreshed}}
	require.Equal(t, 1, consumerhealth.Add(revisions.StageEvidence{}, readers, false).Proven)
	require.Zero(t, consumerhealth.Add(revisions.StageEvidence{}, readers, true).Proven)
	readers = append(readers, consumerhealth.Result{State: consumerhealth.Ran})
	require.Equal(t, 1, consumerhealth.Add(revisions.StageEvidence{}, readers, true).Proven)
}

func TestWhatExcusesAConsumerWhenItsStageOpens(t *testing.T) {
	foreign := func(c *consumerhealth.Consumer) { c.Workload.Stamp = 0 }
	crashing, was := waits("CrashLoopBackOff"), map[string]revisions.Condition{"team/Deployment/was": revisions.Partly}
	bound := func(after time.Duration) podChange {
		return func(p *consumerhealth.Pod) { p.BoundAt = reloadtest.Birth.Add(after) }
	}
	for sentence, test := range map[string]struct {
		c    consumerhealth.Consumer
		want revisions.Condition
	}{
		"a pod fails that read only what was delivered": {web(mounts, with("a", crashing, bound(time.Second))), revisions.Failing},
		"a pod fails that may have read something else": {web(mounts, with("a", crashing, bound(0))), ""},
		"it is not known, and it was excused before":    {web(func(c *consumerhealth.Consumer) { c.Name = "team/Deployment/was" }, with("a", crashing, bound(0))), revisions.Partly},
		"it was excused before, and is healthy by now":  {web(func(c *consumerhealth.Consumer) { c.Name = "team/Deployment/was" }, with("a", bound(0))), ""},
		"it is healthy":                              {web(with("a", started)), ""},
		"a pod fails with what was delivered":        {web(with("a", notReady), with("b", started, crashing)), revisions.Failing},
		"a pod fails, and it is not known with what": {web(with("a", crashing), with("b", started)), ""},
		"the pod that it is to replace fails, too":   {web(with("a", crashing), with("b", started, crashing)), revisions.Failing},
		"it is not known, during a foreign rollout":  {web(foreign, rollout(starting), with("a", crashing)), ""},
		"a pod fails among others that are ready":    {web(with("a", started), with("b", started, crashing)), revisions.Partly},
		"new pods fail, and older ones are ready":    {web(rollout(func(r *workload.Rollout) { r.Updated, r.Old = 1, 1 }), with("a"), with("b", started, crashing)), revisions.Failing},
		"a foreign rollout is in progress":           {web(foreign, rollout(starting), with("a", notReady)), revisions.Rolling},
		"Headwater's own rollout is in progress":     {web(rollout(starting), with("a", notReady)), ""},
		"a foreign rollout is complete":              {web(foreign, with("a")), ""},
		"pods crashed long ago":                      {web(with("a", started, crashed(9))), ""},
		"it is paused in the middle of one":          {web(foreign, rollout(func(r *workload.Rollout) { r.Paused, r.Available = true, 0 })), ""},
		"it hangs for long with what was delivered":  {web(with("a", started, notReady)), revisions.Hanging},
		"it hangs, and it is not known with what":    {web(mounts, with("a", notReady, bound(0))), ""},
		"it is not ready yet":                        {web(with("a", started, notReady, bound(55*time.Minute))), ""},
		"it hangs beside one that is ready":          {web(with("a", started, notReady), with("b", started)), ""},
		"it hangs on a node that was lost":           {web(with("a", started, func(p *consumerhealth.Pod) { p.Readiness = workload.NodeLost })), ""},
		"the pod of a Job fails":                     {web(func(c *consumerhealth.Consumer) { c.Workload = nil }, with("a", started, ofJob, crashing)), ""},
		"somebody changed the template after Headwater did": {web(rollout(starting), edited(time.Hour), func(c *consumerhealth.Consumer) {
			c.Workload.Annotations = map[string]string{"headwater.dev/restarted-at": "2026-01-02T03:04:05Z"}
		}, with("a", notReady)), revisions.Rolling},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.Equal(t, test.want, consumerhealth.Look(test.c, reloadtest.Birth, was[test.c.Name], reloadtest.Birth.Add(time.Hour)))
		})
	}
}

func TestAnImmutableCloneMayBeServedFromACache(t *testing.T) {
	pod := func(name string, bound time.Duration) *workload.Pod {
		return &workload.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(name)}, BoundAt: written.Add(bound)}
	}
	one := pod("one", time.Minute)
	require.True(t, consumerhealth.IsSole(one, []*workload.Pod{one, pod("later", 2*time.Minute)}))
	require.False(t, consumerhealth.IsSole(one, []*workload.Pod{one, pod("older", 0)}))
	require.False(t, consumerhealth.IsSole(one, []*workload.Pod{one, pod("same second", time.Minute)}))
}
