// Package config reads the configuration file.
//
// In: the bytes of one YAML file. Out: a valid Config with every default filled in,
// with notes on settings that are probably not intended; or else Problems: all
// errors, each with its line and what to do about it. Compile turns a Config into
// the rule sets of the modules. Watch reports when the content of the file has
// changed.
//
// A file is checked in three steps: its YAML, its shape (against the JSON
// Schema that editors use too), and its meaning (by the modules' own Validate
// methods). Process flags and the environment are not read here.
package config
