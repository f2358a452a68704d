package sync

// whys say of each reason that has no message of its own what is so, or is due
// to be done about it.
var whys = map[Reason]string{
	InSync:             "it is what its source and its rule say",
	Missing:            "there is no clone yet; it is being made",
	Outdated:           "its source or its rule has changed; it is being written",
	Unmarked:           "it lost its label; it is being put back",
	TakenOver:          "an object of that name was there before; it is being taken over, as the rule says",
	TypeChanged:        "what changed cannot be changed in place; it is being made anew",
	WasImmutable:       "what changed cannot be changed in place; it is being made anew",
	NamespaceUnmatched: "its rule no longer selects this namespace",
	SourceDeleted:      "its source no longer exists",
	RuleRemoved:        "its rule is no longer in the configuration",
	RuleChanged:        "its rule now clones to another name",
	Pruned:             "its rule is no longer in the configuration; it is being deleted, as a person asked",
	Released:           "its rule is no longer in the configuration; its marks are being taken off, as a person asked",
	CloneTerminating:   "it is being deleted",
}

// Why says in a sentence why the clone stands as it does.
func (f Finding) Why() string {
	switch why, known := whys[f.Step.Reason]; {
	case f.Step.Message != "":
		return f.Step.Message
	case f.Standing == Drifting && f.Step.Reason == Outdated:
		return "somebody changed it; it is being put right"
	case known:
		return why
	default:
		return string(f.Step.Reason)
	}
}
