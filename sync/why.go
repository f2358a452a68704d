package sync

// Why says in a sentence why the clone stands as it does: what stands in its
// way, or what is due to be done about it.
func (f Finding) Why() string {
	if f.Step.Message != "" {
		return f.Step.Message
	}
	switch f.Step.Reason {
	case InSync:
		return "it is what its source and its rule say"
	case Missing:
		return "there is no clone yet; it is being made"
	case Outdated:
		if f.Standing == Drifting {
			return "somebody changed it; it is being put right"
		}
		return "its source or its rule has changed; it is being written"
	case Unmarked:
		return "it lost its label; it is being put back"
	case TakenOver:
		return "an object of that name was there before; it is being taken over, as the rule says"
	case TypeChanged, WasImmutable:
		return "what changed cannot be changed in place; it is being made anew"
	case NamespaceUnmatched:
		return "its rule does not reach this namespace any more"
	case SourceDeleted:
		return "its source is gone"
	case RuleRemoved:
		return "its rule is gone from the file"
	case RuleChanged:
		return "its rule now clones to another name"
	case CloneTerminating:
		return "it is being deleted"
	}
	return string(f.Step.Reason)
}
