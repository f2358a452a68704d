package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// oneArgument requires the argument that the command's usage names.
func oneArgument(command *cobra.Command, args []string) error {
	_, name, _ := strings.Cut(command.Use, " ")
	name = strings.Trim(name, "[]") // around an optional argument
	switch len(args) {
	case 1:
		return nil
	case 0:
		return seeHelp(command, fmt.Errorf("%s is missing", name))
	default:
		return seeHelp(command, fmt.Errorf("takes one %s, not %d: %s", name, len(args), strings.Join(args, " ")))
	}
}

// oneObject requires the object that the command's usage names, as KIND/NAME or
// KIND NAME.
func oneObject(command *cobra.Command, args []string) error {
	if len(args) == 2 && !strings.Contains(args[0]+args[1], "/") {
		return nil
	}
	return oneArgument(command, args)
}

// optionalArgument accepts at most one argument.
func optionalArgument(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return oneArgument(command, args)
}

func noArguments(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return seeHelp(command, fmt.Errorf("takes no arguments: %s", strings.Join(args, " ")))
}

// flagError explains an error of flag parsing.
func flagError(command *cobra.Command, err error) error {
	if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
		err = fmt.Errorf("--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), expectedValue(err))
	}
	return seeHelp(command, err)
}

func seeHelp(command *cobra.Command, err error) error {
	return fmt.Errorf("%w; see %s --help", err, command.CommandPath())
}
