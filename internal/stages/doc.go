// Package stages holds the stages of a delivery: their configuration, and which namespace
// belongs to which of them.
//
// sync delivers a revision stage by stage; reload asks which stage a namespace is in. The
// package is pure.
package stages
