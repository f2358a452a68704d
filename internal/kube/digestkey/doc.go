// Package digestkey holds the key that data is digested with.
//
// It is stored in a Secret of the namespace of Headwater, so that all replicas and
// the next start compare with the same digests. The key never leaves the process.
package digestkey
