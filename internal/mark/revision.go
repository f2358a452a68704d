package mark

// Revision on a clone is the number of the recorded revision of its source that
// it was written from. As a label, it marks the object that records a revision.
const Revision = Domain + "revision"

// Annotations of the object that records a revision, beside Rule, Source and
// SourceUID.
const (
	// Verdict is how far the delivery of the revision came.
	Verdict = Domain + "verdict"
	// Reason is why the verdict is what it is, for people.
	Reason = Domain + "reason"
	// Stage is the name of the stage that the delivery has reached.
	Stage = Domain + "stage"
	// StageSince is when it reached that stage; see FormatTime.
	StageSince = Domain + "stage-since"
	// Passed are the names of the stages that the delivery passed: a JSON list.
	Passed = Domain + "passed"
	// Paused says who paused the delivery, and when.
	Paused = Domain + "paused"
	// Pinned says who rolled back to the revision, and when.
	Pinned = Domain + "pinned"
	// PinnedOver is the number of the revision that the source had by then.
	PinnedOver = Domain + "pinned-over"
	// Approved says who let the delivery go on to the stage after Stage, and when.
	Approved = Domain + "approved"
	// EditedBy is the field manager that last edited the source.
	EditedBy = Domain + "edited-by"
	// ChangedKeys are the keys that differ from the stable revision, named as the clones
	// have them: a JSON list. Without it, the whole object counts as changed.
	ChangedKeys = Domain + "changed-keys"
	// Evidence is what reload has seen of the revision's readers; see revisions.Evidence.
	Evidence = Domain + "evidence"
	// Soaked, Waited and Lacked are sums of observed time, such as 1m30s: how long the gate
	// of Stage held, how long it waited for consumers, and how long for evidence alone.
	Soaked = Domain + "soaked"
	Waited = Domain + "waited"
	Lacked = Domain + "lacked"
	// Emptied identifies what the source of the revision lacked; see plan.Lack.
	Emptied = Domain + "emptied"
	// HeldUntil is when a revision is delivered that was held because its content was not
	// valid yet.
	HeldUntil = Domain + "held-until"
	// AllAtOnceValue is the annotation Delivery of the source as it was when the revision
	// was recorded.
	AllAtOnceValue = Domain + "all-at-once"
	// SkipsStages is "true" if the revision skips the stages for that annotation.
	SkipsStages = Domain + "skips-stages"
	// DigestKey, a label, is the digest.Hasher.ID of the digest key that Headwater had when it
	// recorded the revision.
	DigestKey = Domain + "digest-key"
	// Protocol is "evidence" on a revision that was recorded since deliveries go on by
	// Evidence.
	Protocol = Domain + "protocol"
	// Unproven is a JSON object: stages that need no evidence, each with who said so and
	// when.
	Unproven = Domain + "unproven"
	// SourceImmutable is "true" if the source was immutable; the object that
	// records a revision always is.
	SourceImmutable = Domain + "source-immutable"
)

// Delivery on a source says how its next revision is delivered.
const Delivery = Domain + "delivery"

// AllAtOnce is the value of Delivery that skips the stages.
const AllAtOnce = "AllAtOnce"

// Consumers on a clone is what an earlier version reported there. It is neither read nor a
// reason to write the clone.
const Consumers = Domain + "consumers"
