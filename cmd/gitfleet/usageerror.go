package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/placement/api"
)

// checkArguments makes every command report wrong arguments with its usage line, and every
// group of commands report an unknown command with the most similar one.
func checkArguments(cmd *cobra.Command) {
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args, cmd.RunE = unknownCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	} else if accepts := cmd.Args; accepts != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if accepts(cmd, args) == nil {
				return nil
			}
			if more := append(args[:len(args):len(args)], ""); accepts(cmd, more) == nil {
				return fmt.Errorf("an argument is missing; write %s\nsee \"%s --help\"", cmd.UseLine(), cmd.CommandPath())
			}
			return fmt.Errorf("unexpected argument %q; write %s\nsee \"%s --help\"", args[len(args)-1], cmd.UseLine(), cmd.CommandPath())
		}
	}
	for _, below := range cmd.Commands() {
		checkArguments(below)
	}
}

// unknownCommand returns an error if a group of commands gets an argument. cobra would
// otherwise run the group without an error.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			names = append(names, below.Name())
		}
	}
	return fmt.Errorf("there is no command \"%s %s\"; %s", cmd.CommandPath(), args[0], api.Suggest(args[0], names, fmt.Sprintf("see \"%s --help\"", cmd.CommandPath())))
}

// flagError says what to use instead of a flag that does not exist: a setting of the
// configuration file, or the flag that the user probably meant.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && invalid.GetFlag().Name == "output" {
		return invalid.Unwrap() // which has the whole message
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return fmt.Errorf("%w\nsee \"%s --help\"", err, cmd.CommandPath())
	}
	name := unknown.GetSpecifiedName()
	if keys := settings.KeysNamed(name); len(keys) > 0 && cmd.Flags().Lookup(settings.SetFlag) != nil {
		return fmt.Errorf("--%s is not a flag; set %s in the configuration file, or with --%s KEY=VALUE", name, strings.Join(keys, " or "), settings.SetFlag)
	}
	var flags []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
	text := fmt.Sprintf("--%s is not a flag of \"%s\"", name, cmd.CommandPath())
	if near := api.Closest(name, flags); near != "" {
		return fmt.Errorf("%s; %s", text, api.DidYouMean("--"+near))
	}
	return fmt.Errorf("%s; see \"%s --help\"", text, cmd.CommandPath())
}
