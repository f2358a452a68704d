// Package output prints results of commands like kubectl does: as a table, as data, or
// as the names or fields that the user asks for.
package output
