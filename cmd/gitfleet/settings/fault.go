package settings

import (
	"fmt"
	"strings"
)

// fault returns an error about a setting with the position where it was set: the line of the
// file, or the flag.
func (c Config) fault(key, message string) error {
	if key == "source.url" && c.repositoryGiven {
		return fmt.Errorf("the repository: %s", message)
	}
	if line := c.lines[key]; line > 0 {
		return fmt.Errorf("%s:%d: %s: %s", c.file, line, key, message)
	}
	for _, own := range settingFlags {
		if own.key == key {
			return fmt.Errorf("%s: %s (--%s)", key, message, own.flag)
		}
	}
	return fmt.Errorf("%s: %s", key, message)
}

// keys are the keys in the file of the fields of gitsource.Config that have other names there.
var keys = map[string]string{
	"auth":                        "source",
	"ref":                         "source",
	"auth.token":                  "source.tokenFile",
	"auth.token.env":              "source.tokenEnv",
	"auth.bearer":                 "source.bearerFile",
	"auth.bearer.env":             "source.bearerEnv",
	"auth.password":               "source.passwordFile",
	"auth.password.env":           "source.passwordEnv",
	"auth.username":               "source.username",
	"auth.caBundle":               "source.caBundle",
	"auth.ssh.key":                "source.sshKeyFile",
	"auth.ssh.key.env":            "source.sshKeyEnv",
	"auth.ssh.passphrase":         "source.sshPassphraseFile",
	"auth.ssh.passphrase.env":     "source.sshPassphraseEnv",
	"auth.ssh.knownHosts":         "source.sshKnownHosts",
	"auth.githubApp.id":           "source.githubAppID",
	"auth.githubApp.installation": "source.githubAppInstallation",
	"auth.githubApp.key":          "source.githubAppKeyFile",
	"auth.githubApp.key.env":      "source.githubAppKeyEnv",
	"auth.githubApp.apiURL":       "source.githubAppAPIURL",
	"stateDir":                    "stateDir",
}

// keyOf returns the key of a field of gitsource.Config.
func keyOf(field string) string {
	if key, ok := keys[field]; ok {
		return key
	}
	if strings.HasPrefix(field, "limits.") {
		return field
	}
	return "source." + strings.TrimPrefix(field, "ref.")
}
