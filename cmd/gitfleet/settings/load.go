package settings

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
)

// Load returns the defaults, overridden by the file, overridden by flags.
func Load(path string, flags *pflag.FlagSet) (Config, error) {
	c, err := Read(path, flags)
	if err != nil {
		return c, err
	}
	return c, c.Validate()
}

// Read is Load without validation, for callers that use only a part of the configuration.
func Read(path string, flags *pflag.FlagSet) (Config, error) {
	c := Default()
	if path != "" {
		raw, err := os.ReadFile(path)
		if err != nil {
			return c, fmt.Errorf("read configuration: %w", err)
		}
		if err := c.parse(path, raw); err != nil {
			return c, err
		}
	}
	if err := c.override(flags); err != nil {
		return c, err
	}
	var err error
	if c.StateDir, err = filepath.Abs(c.StateDir); err != nil {
		return c, fmt.Errorf("stateDir: %w", err)
	}
	return c, nil
}
