// Package configs carries the configuration file's JSON Schema and the
// commented sample, so that the binary can check against the one and print
// the other.
package configs

import _ "embed"

//go:embed headwater.schema.json
var schema string

//go:embed headwater.yaml
var sample string

// Schema returns the JSON Schema (draft 2020-12) of the configuration file.
func Schema() []byte { return []byte(schema) }

// Sample returns the commented sample configuration file.
func Sample() []byte { return []byte(sample) }
