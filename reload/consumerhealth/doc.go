// Package consumerhealth decides what the consumers of a clone show of the revision that
// it holds: who reads it, who ran it, who is waited for, who fails.
//
//	[]Consumer, Past ──▶ Judge ──▶ []Result ──▶ Sum ──▶ revisions.StageEvidence
//
// What is not known is no evidence. The content that pods started with decides, and never
// a node's clock. The package is pure.
package consumerhealth
