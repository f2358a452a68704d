package page

// State is how things stand in a cell of the grid: a rule in a namespace.
type State uint8

// The states, each worse than those before it. A cell that holds several
// clones stands as the worst of them.
const (
	Empty State = iota // the rule has nothing here
	Current
	Retained
	Removing
	Behind
	Drifting
	Held
	Refused
	Conflict
	Failed
)

// stateWord is what a person reads of a State, and what a script names it by.
type stateWord struct {
	// Code stands for it in the stream: its number as a letter, from a.
	Code string `json:"code"`
	Name string `json:"name"`
	// Text is what the page calls it, Means what that means.
	Text  string `json:"text"`
	Means string `json:"means"`
}

var stateWords = []stateWord{
	{"a", "empty", "nothing here", "the rule does not reach this namespace"},
	{"b", "current", "in sync", "the clone is what its source and its rule say"},
	{"c", "retained", "retained", "left behind on purpose; nobody keeps it right any more"},
	{"d", "removing", "removing", "due to be deleted"},
	{"e", "behind", "waiting", "older than its source, or not there yet"},
	{"f", "drifting", "drifting", "changed by somebody; being put right"},
	{"g", "held", "held", "needs a person's approval, or a cause to go away"},
	{"h", "refused", "refused", "must not be cloned"},
	{"i", "conflict", "conflict", "something that is not this rule's is in its place"},
	{"j", "failed", "failed", "the last write failed; it is tried again"},
}

// StateNamed returns the state of that name.
func StateNamed(name string) (state State, known bool) {
	for i, word := range stateWords {
		if word.Name == name {
			return State(i), true
		}
	}
	return Empty, false
}

func (s State) word() stateWord { return stateWords[s] }

// code is the letter that stands for s.
func (s State) code() byte { return 'a' + byte(s) }

// MarshalText gives the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.word().Name), nil }
