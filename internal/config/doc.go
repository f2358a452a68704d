// Package config reads the configuration file.
//
// In: the bytes of one YAML file. Out: a Config with every default filled in
// and nothing wrong with it, and notes on what of it is hardly meant; or
// Problems: everything that is wrong, each with its line and what to do about
// it. Compile turns a Config into the rule sets
// that the modules work with, and Watch tells when the file's content has
// changed.
//
// A file is checked in three steps: its YAML, its shape (against the JSON
// Schema that editors use too), and its meaning (by the modules' own Validate
// methods). Process flags and the environment are not read here.
package config
