package grid

// State is how things stand in a cell of the grid: a rule in a namespace.
type State uint8

// The states, each worse than those before it. A cell that holds several
// clones stands as the worst of them.
const (
	Empty State = iota // the rule does not select the namespace
	Current
	Retained
	Removing
	Behind
	Drifting
	Fighting
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

// StateWords are the words for each State, in the order of the states.
var StateWords = []stateWord{
	{"a", "empty", "not selected", "the rule does not select this namespace"},
	{"b", "current", "in sync", "the clone matches its source and its rule"},
	{"c", "retained", "retained", "kept on purpose after its rule, source or namespace stopped matching; Headwater no longer updates it"},
	{"d", "removing", "removing", "Headwater is about to delete it"},
	{"e", "behind", "waiting", "older than its source, or not created yet"},
	{"f", "drifting", "drifting", "somebody changed it; Headwater is repairing it"},
	{"g", "fighting", "fighting", "another client undoes each repair; Headwater repairs it with growing pauses"},
	{"h", "held", "held", "waits for an approval, or until its cause is gone"},
	{"i", "refused", "refused", "Headwater must not create this clone"},
	{"j", "conflict", "conflict", "an object that this rule did not create has the clone's name"},
	{"k", "failed", "failed", "the last write failed; Headwater tries again"},
}

// StateNamed returns the state of that name.
func StateNamed(name string) (state State, known bool) {
	for i, word := range StateWords {
		if word.Name == name {
			return State(i), true
		}
	}
	return Empty, false
}

func (s State) word() stateWord { return StateWords[s] }

// code is the letter that stands for s.
func (s State) code() byte { return 'a' + byte(s) }

// MarshalText gives the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.word().Name), nil }
