package settings

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/gitsource/decryption"
	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/tracing"
)

// minHistory is the minimum size, so that the history is not truncated after every few lines.
const minHistory = 64 << 10

// minConnections is the minimum of server.maxConnections: an eighth of them is left for checks of the kubelet.
const minConnections = 64

// Validate returns an error that names the invalid settings, with their keys in the file and, for most
// of them, where they were set. Of those about access it names the first.
func (c Config) Validate() error {
	var errs []error
	require := func(ok bool, key, message string) {
		if !ok {
			errs = append(errs, c.fault(key, message))
		}
	}
	for _, msg := range validation.IsValidLabelValue(c.FleetName) {
		errs = append(errs, c.fault("fleetName", msg))
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		errs = append(errs, c.fault("listen", err.Error()+"; use HOST:PORT"))
	} else if invalid := c.AccessConfig().Validate(); invalid != nil {
		errs = append(errs, c.fault(invalid.Field, invalid.Message))
	}
	if _, err := c.level(); err != nil {
		errs = append(errs, c.fault("logLevel", err.Error()))
	}
	require(c.LogFormat == logText || c.LogFormat == logJSON, "logFormat", fmt.Sprintf("%q is neither text nor json", c.LogFormat))
	if c.Tracing.Endpoint != "" {
		if err := tracing.ValidateEndpoint(c.Tracing.Endpoint); err != nil {
			errs = append(errs, c.fault("tracing.endpoint", err.Error()))
		}
	}
	for _, s := range c.settings() {
		require(s.positive(), s.key, "must be more than zero")
	}
	conditions := status.Conditions(c.Status.Conditions)
	require(conditions == status.CurrentConditions || conditions == status.DocumentedConditions,
		"status.conditions", fmt.Sprintf("%q is neither current nor documented", conditions))
	require(c.Rollout.Approvals == approvalsAny || c.Rollout.Approvals == approvalsGit, "rollout.approvals", fmt.Sprintf("%q is neither any nor git", c.Rollout.Approvals))
	require(c.Server.MaxConnections <= 0 || c.Server.MaxConnections >= minConnections, "server.maxConnections", fmt.Sprintf("must be at least %d", minConnections))
	require(c.History.MaxSize <= 0 || c.History.MaxSize >= minHistory, "history.maxSize", "must be at least 64Ki")
	errs = append(errs, c.ValidateSource())
	errs = append(errs, c.validateHosts()...)
	errs = append(errs, c.validateDecryption()...)
	errs = append(errs, validateGates(c)...)
	errs = append(errs, c.validateDrift()...)
	errs = append(errs, c.validatePullRequests()...)
	errs = append(errs, c.ValidateHighAvailability())
	require(c.Webhook.SecretFile == "" || c.Webhook.SecretEnv == "", "webhook.secretFile", "set only one of secretFile and secretEnv")
	m := c.Members
	require(m.KubeconfigDir != "" || m.Kubeconfig != "" || m.SecretNamespace != "", "members",
		"the kubeconfigs of the members are missing: set kubeconfigDir, kubeconfig or secretNamespace")
	return errors.Join(errs...)
}

// hostName matches HOST and HOST:PORT.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]+)?$`)

func (c Config) validateHosts() []error {
	var errs []error
	seen := map[string]bool{}
	for i, h := range c.Hosts {
		at := func(field string) string { return fmt.Sprintf("hosts[%d].%s", i, field) }
		name := strings.ToLower(h.Host)
		switch {
		case !hostName.MatchString(h.Host):
			errs = append(errs, c.fault(at("host"), fmt.Sprintf("%q is not HOST or HOST:PORT", h.Host)))
		case seen[name]:
			errs = append(errs, c.fault(at("host"), h.Host+" is there twice; remove one entry"))
		}
		seen[name] = true
		set := 0
		for _, pair := range [][2]string{{h.PasswordFile, h.PasswordEnv}, {h.TokenFile, h.TokenEnv}, {h.BearerFile, h.BearerEnv}} {
			for _, source := range pair {
				if source != "" {
					set++
				}
			}
		}
		if set > 1 {
			errs = append(errs, c.fault(at("host"), "set only one of passwordFile, passwordEnv, tokenFile, tokenEnv, bearerFile and bearerEnv"))
		}
		if h.PasswordFile+h.PasswordEnv != "" && h.Username == "" {
			errs = append(errs, c.fault(at("username"), "must be set with a password"))
		}
		if (h.SSHKeyFile == "") != (h.SSHKnownHosts == "") {
			errs = append(errs, c.fault(at("sshKnownHosts"), "sshKeyFile and sshKnownHosts are set together"))
		}
		if h.PlainHTTP && h.CABundle != "" {
			errs = append(errs, c.fault(at("caBundle"), "has no effect with plainHTTP; remove one of them"))
		}
	}
	return errs
}

func (c Config) validateDecryption() []error {
	var errs []error
	for _, text := range c.Decryption.Paths {
		if _, err := decryption.ParsePath(text); err != nil {
			errs = append(errs, c.fault("decryption.paths", err.Error()))
		}
	}
	if info, err := os.Stat(c.Decryption.KeyFile); len(c.Decryption.Paths) > 0 && (err != nil || !info.IsDir()) {
		errs = append(errs, c.fault("decryption.paths", "decryption.keyFile must be a directory, with a file for each of these keys"))
	}
	return errs
}

// ValidateLimits returns an error about the first limit that is not positive.
func (c Config) ValidateLimits() error {
	for _, s := range c.settings() {
		if strings.HasPrefix(s.key, "limits.") && !s.positive() {
			return c.fault(s.key, "must be more than zero")
		}
	}
	return nil
}

// ValidateSource validates the settings of packages that read the repository, where some of
// them have other names.
func (c Config) ValidateSource() error {
	var errs []error
	if err := c.HubOptions().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("source.%w", err))
	}
	if c.Source.URL == "" {
		return errors.Join(append(errs, c.fault("source.url", "set the repository that is the hub"))...)
	}
	for _, err := range Flatten(c.GitConfig(nil).Validate()) {
		var field *remote.FieldError
		if errors.As(err, &field) {
			text := field.Err.Error()
			if field.Permit != "" {
				text += fmt.Sprintf(", with --set source.%s=true or in the configuration file", field.Permit)
			}
			errs = append(errs, c.fault(keyOf(field.Field), text))
		} else {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Flatten splits joined errors.
func Flatten(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, Flatten(e)...)
	}
	return all
}

func (c Config) validateDrift() []error {
	var errs []error
	if !isDriftMode(c.Drift.Mode) {
		errs = append(errs, c.fault("drift.mode", fmt.Sprintf("%q is none of revert, propose, report", c.Drift.Mode)))
	}
	if c.Drift.Group != groupChange && c.Drift.Group != groupPlacement {
		errs = append(errs, c.fault("drift.group", fmt.Sprintf("%q is none of change, placement", c.Drift.Group)))
	}
	if mode := api.AdditionsMode(c.Drift.Additions); mode != api.AdditionsIgnore && !mode.Looks() {
		errs = append(errs, c.fault("drift.additions", fmt.Sprintf("%q is none of ignore, report, propose", c.Drift.Additions)))
	}
	for _, kind := range slices.Sorted(maps.Keys(c.Drift.Kinds)) {
		if err := validateKindMode(kind, string(c.Drift.Kinds[kind])); err != nil {
			errs = append(errs, c.fault("drift.kinds."+kind, err.Error()))
		}
	}
	if len(errs) > 0 || !c.AsksForge() {
		return errs
	}
	if c.Source.Branch == "" {
		errs = append(errs, c.fault("source.branch", "pull requests of drift need a target branch: set it"))
	}
	return append(errs, c.validateForge()...)
}

func (c Config) validateForge() []error {
	var errs []error
	if err := c.ForgeConfig().Type.Validate(); err != nil {
		errs = append(errs, c.fault("forge.type", err.Error()))
	}
	if (c.Forge.TokenFile == "") == (c.Forge.TokenEnv == "") {
		errs = append(errs, c.fault("forge.tokenFile", "set one of tokenFile and tokenEnv"))
	}
	if c.Forge.Interval.Duration < time.Second {
		errs = append(errs, c.fault("forge.interval", fmt.Sprintf("must be at least 1s, is %s", c.Forge.Interval.Duration)))
	}
	f := c.ForgeConfig()
	if err := f.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("forge.%w", err))
	}
	if strings.HasPrefix(f.URL, "http://") && !c.Source.AllowHTTP {
		errs = append(errs, c.fault("forge.url", "must be https://, since a token is sent; source.allowHTTP allows http://"))
	}
	return errs
}

func (c Config) validatePullRequests() []error {
	var errs []error
	if c.PullRequests.DryRun && !c.PullRequests.Plans {
		errs = append(errs, c.fault("pullRequests.dryRun", "is a part of the plans: set pullRequests.plans as well"))
	}
	if !c.PullRequests.Enabled() {
		return errs
	}
	if c.PullRequests.ForksLabel != "" && c.ForgeConfig().Type.AuthorSetsLabels() {
		errs = append(errs, c.fault("pullRequests.forksLabel", "has no effect on Gitea, where anybody can set the labels of a pull request that they open: remove it"))
	}
	switch {
	case c.Source.Branch == "":
		return append(append(errs, c.validateForge()...), c.fault("source.branch", "plans and statuses need the branch of the pull requests: set it"))
	case c.Drift.proposes():
		return errs // the settings of the forge were validated with it
	}
	return append(errs, c.validateForge()...)
}

// ValidateHighAvailability validates the settings of replicas.
func (c Config) ValidateHighAvailability() error {
	lease := c.HighAvailability.Lease
	if lease == (LeaseConfig{}) && c.HighAvailability.Kubeconfig == "" {
		return nil
	}
	var errs []error
	for _, part := range []struct{ key, value string }{{"highAvailability.lease.name", lease.Name}, {"highAvailability.lease.namespace", lease.Namespace}} {
		if part.value == "" {
			errs = append(errs, c.fault(part.key, "is missing; all replicas need the same"))
			continue
		}
		for _, msg := range validation.IsDNS1123Label(part.value) {
			errs = append(errs, c.fault(part.key, msg))
		}
	}
	return errors.Join(errs...)
}
