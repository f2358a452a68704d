package notify

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/discord"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/googlechat"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/mattermost"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/rocketchat"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/slack"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/teams"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/incident/opsgenie"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/incident/pagerduty"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/ntfy"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/specialized/generic"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// service is a service that accepts an HTTP client. Without that, a report
// could not have a deadline.
type service interface {
	types.Service
	types.HTTPClientSetter
}

// known is a supported service with an example of its URL.
type known struct {
	make    func() service
	example string
}

var services = map[string]known{
	discord.Scheme:    {func() service { return &discord.Service{} }, "discord://TOKEN@WEBHOOK"},
	generic.Scheme:    {func() service { return &webhook{} }, "https://HOST/PATH, or generic://HOST/PATH?template=json"},
	googlechat.Scheme: {func() service { return &googlechat.Service{} }, "googlechat://chat.googleapis.com/v1/spaces/SPACE/messages?key=KEY&token=TOKEN"},
	mattermost.Scheme: {func() service { return &mattermost.Service{} }, "mattermost://HOST/TOKEN"},
	ntfy.Scheme:       {func() service { return &ntfy.Service{} }, "ntfy://HOST/TOPIC"},
	opsgenie.Scheme:   {func() service { return &opsgenie.Service{} }, "opsgenie://api.opsgenie.com/KEY"},
	pagerduty.Scheme:  {func() service { return &pagerduty.Service{} }, "pagerduty://events.pagerduty.com/INTEGRATION-KEY"},
	rocketchat.Scheme: {func() service { return &rocketchat.Service{} }, "rocketchat://HOST/TOKEN-A/TOKEN-B"},
	slack.Scheme:      {func() service { return &slack.Service{} }, "https://hooks.slack.com/services/…, as Slack gives it, or slack://xoxb:TOKEN@CHANNEL"},
	teams.Scheme:      {func() service { return &teams.Service{} }, "the https URL of a workflow, as Teams gives it"},
}

// locate returns the service for the URL raw. Its errors contain nothing of raw
// but the scheme.
func locate(raw string) (service, error) {
	at, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || at.Scheme == "" {
		return nil, errors.New("is not a URL; write it as https://…, or as SERVICE://…")
	}
	if at.Scheme == "http" || at.Scheme == "https" {
		if at.Host == "" {
			return nil, errors.New("has no host; write it as https://HOST/PATH")
		}
		at = ofWebhook(at)
	}
	found, ok := services[at.Scheme]
	if !ok {
		return nil, fmt.Errorf("%.20q is no service that is known; write https://… for a webhook, or one of %s", at.Scheme, strings.Join(schemes(), ", "))
	}
	made := found.make()
	err = made.Initialize(at, nil)
	if refused, is := errors.AsType[optionError](err); is {
		return nil, fmt.Errorf("has an option that cannot be: %w", refused)
	}
	if err != nil || !complete(at) {
		return nil, fmt.Errorf("is no URL of %s; write %s", at.Scheme, found.example)
	}
	return made, nil
}

// ofWebhook converts the URL of a webhook to the URL of its service. Slack and
// Teams are recognised by their hosts; others receive JSON.
func ofWebhook(at *url.URL) *url.URL {
	if rest, is := strings.CutPrefix(at.Path, "/services/"); is && at.Hostname() == "hooks.slack.com" {
		token := strings.ReplaceAll(strings.Trim(rest, "/"), "/", "-")
		return &url.URL{Scheme: slack.Scheme, User: url.UserPassword("hook", token), Host: "webhook"}
	}
	if teams.ValidateWebhookURL(at.String()) == nil {
		return &url.URL{Scheme: teams.Scheme, RawQuery: url.Values{"host": {at.String()}}.Encode()}
	}
	query := at.Query()
	if !query.Has("template") {
		query.Set("template", generic.JSONTemplate)
	}
	if at.Scheme == "http" {
		query.Set("disabletls", "yes")
	}
	hook := *at
	hook.Scheme, hook.RawQuery = generic.Scheme, query.Encode()
	return &hook
}

// complete makes checks that services themselves only make when they send.
func complete(at *url.URL) bool {
	if at.Scheme == teams.Scheme {
		return teams.ValidateWebhookURL(at.Query().Get("host")) == nil
	}
	return at.Host != ""
}

func schemes() []string {
	names := make([]string, 0, len(services))
	for scheme := range services {
		names = append(names, scheme+"://")
	}
	slices.Sort(names)
	return names
}
