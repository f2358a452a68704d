package rulestatus

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headwater-k8s/headwater/internal/object"
	"github.com/headwater-k8s/headwater/internal/revisions"
	"github.com/headwater-k8s/headwater/internal/text"
)

const (
	// maxRevisions bounds the revisions of one source that a Status lists, and maxAll those
	// of all sources.
	maxRevisions = 10
	maxAll       = 50
)

// History is what people need to steer deliveries: numbers, names and times, and nothing of
// any content.
type History struct {
	// Kept is how many revisions of a source the rule keeps; 0 if it keeps none.
	Kept int `json:"kept"`
	// Sources are those with revisions, first those with a delivery that is under way or
	// did not pass. MoreSources counts the ones that are left out.
	Sources     []SourceHistory `json:"sources,omitempty"`
	MoreSources int             `json:"moreSources,omitempty"`
}

// SourceHistory lists revisions of one source, the newest first. MoreRevisions counts the
// ones that are left out.
type SourceHistory struct {
	Source        string     `json:"source"`
	Revisions     []Revision `json:"revisions"`
	MoreRevisions int        `json:"moreRevisions,omitempty"`
}

// Revision is one recorded revision. Its fields are those of revisions.Revision.
type Revision struct {
	Number   int               `json:"number"`
	Recorded metav1.Time       `json:"recorded"`
	EditedBy string            `json:"editedBy,omitempty"`
	Verdict  revisions.Verdict `json:"verdict"`
	// Stage is the one that the delivery has reached; empty if none is under way.
	Stage string `json:"stage,omitempty"`
	// Reason is why it has the verdict, or what it waits for.
	Reason string `json:"reason,omitempty"`
	// Pinned and Paused name who asked for it, and when.
	Pinned string `json:"pinned,omitempty"`
	Paused string `json:"paused,omitempty"`
	// Clones is how many clones name the revision; only those of rules with a delivery do.
	Clones   int       `json:"clones"`
	Evidence *Evidence `json:"evidence,omitempty"`
}

// Evidence counts what the readers of a revision showed, over all stages that it reached.
// The fields are those of revisions.StageEvidence; Idle is that of revisions.Evidence,
// and Excused counts its Before.
type Evidence struct {
	Ran       int `json:"ran"`
	Refreshed int `json:"refreshed"`
	Waiting   int `json:"waiting"`
	Failing   int `json:"failing"`
	Idle      int `json:"idle"`
	Excused   int `json:"excused"`
}

// SourceRevisions is what is known of one source.
type SourceRevisions struct {
	Source object.Ref
	revisions.History

	// Clones counts the clones by the revision that they name.
	Clones map[int]int
	// Waits is what the candidate waits for; empty if this process does not know.
	Waits string
}

// NewHistory returns what a Status says of sources, in any order, whose rule keeps that many
// revisions of each. With many sources, it lists fewer revisions of each.
func NewHistory(kept int, sources []SourceRevisions) *History {
	history := &History{Kept: kept}
	slices.SortFunc(sources, func(a, b SourceRevisions) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Source.String(), b.Source.String()))
	})
	shown := min(len(sources), maxAll)
	history.MoreSources = len(sources) - shown
	for _, source := range sources[:shown] {
		history.Sources = append(history.Sources, source.list(min(maxRevisions, maxAll/shown)))
	}
	return history
}

// rank is lower for what needs a person sooner.
func (s *SourceRevisions) rank() int {
	if newest := s.Newest(); s.Candidate() == nil && s.Pinned() == nil && newest.Verdict == revisions.Delivered {
		return 1
	}
	return 0
}

// list returns at most most revisions: those by which the delivery goes on, and then the
// newest ones.
func (s *SourceRevisions) list(most int) SourceHistory {
	newest := slices.Clone(s.History)
	slices.Reverse(newest)
	listed := map[*revisions.Revision]bool{}
	for _, one := range append([]*revisions.Revision{s.Candidate(), s.Pinned(), s.Newest(), s.Stable()}, newest...) {
		if one != nil && len(listed) < most {
			listed[one] = true
		}
	}
	found := SourceHistory{Source: s.Source.String(), MoreRevisions: len(newest) - len(listed)}
	for _, one := range newest {
		if listed[one] {
			found.Revisions = append(found.Revisions, s.revision(one))
		}
	}
	return found
}

func (s *SourceRevisions) revision(r *revisions.Revision) Revision {
	reason := r.Reason
	if r.Verdict == revisions.Delivering {
		reason = s.Waits
	}
	return Revision{
		Number: r.Number, Recorded: metav1.NewTime(r.Recorded), EditedBy: r.EditedBy, Verdict: r.Verdict, Stage: r.Stage,
		Reason: text.Truncate(reason, maxMessage), Clones: s.Clones[r.Number], Evidence: evidenceOf(r),
		Pinned: text.Truncate(r.Pinned, maxMessage), Paused: text.Truncate(r.Paused, maxMessage),
	}
}

func evidenceOf(r *revisions.Revision) *Evidence {
	if len(r.Evidence.Stages) == 0 {
		return nil
	}
	sum := &Evidence{Failing: len(r.Evidence.Failing), Idle: r.Evidence.Idle, Excused: len(r.Evidence.Before)}
	for _, stage := range r.Evidence.Stages {
		sum.Ran, sum.Refreshed, sum.Waiting = sum.Ran+stage.Ran, sum.Refreshed+stage.Refreshed, sum.Waiting+stage.Waiting
	}
	return sum
}

// recallHistory takes from before what a delivery waits for that this process has not judged.
func (f *Facts) recallHistory(before *History) {
	if f.History == nil || before == nil {
		return
	}
	for i := range f.History.Sources {
		one := &f.History.Sources[i]
		at := slices.IndexFunc(before.Sources, func(known SourceHistory) bool { return known.Source == one.Source })
		if at < 0 || !f.Unjudged.Has(one.Source) {
			continue
		}
		for j := range one.Revisions {
			same := slices.IndexFunc(before.Sources[at].Revisions, func(known Revision) bool {
				now := one.Revisions[j]
				return known.Number == now.Number && known.Verdict == now.Verdict && known.Stage == now.Stage
			})
			if same >= 0 && one.Revisions[j].Reason == "" {
				one.Revisions[j].Reason = before.Sources[at].Revisions[same].Reason
			}
		}
	}
}

// Revised returns the listed revisions, with what a request about a delivery is decided by.
func (s *SourceHistory) Revised() revisions.History {
	var all []*revisions.Revision
	for _, one := range s.Revisions {
		all = append(all, &revisions.Revision{
			Number: one.Number, Verdict: one.Verdict, Stage: one.Stage, Pinned: one.Pinned, Paused: one.Paused,
		})
	}
	return revisions.NewHistory(all)
}
