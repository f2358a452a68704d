package notify

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const slackWebhook = "https://hooks.slack.com/services/T0123ABCD/B0123ABCD/abcdefghijklmnopqrstuvwx"

const teamsWebhook = "https://prod-00.westus.logic.azure.com:443/workflows/0123/triggers/manual/paths/invoke?sig=token"

func TestWhatAReceiverIsToldByItsURL(t *testing.T) {
	for sentence, c := range map[string]struct{ url, service string }{
		"a webhook as Slack gives it":          {slackWebhook, "slack"},
		"a bot of Slack":                       {"slack://xoxb:123456789012-1234567890123-abcdefghijklmnopqrstuvwx@C001CHANNEL", "slack"},
		"a workflow as Teams gives it":         {teamsWebhook, "teams"},
		"a webhook of one's own":               {"https://example.com/hook?of=us", "generic"},
		"a webhook without TLS":                {"http://127.0.0.1:8080/hook", "generic"},
		"a webhook in the library's own words": {"generic://127.0.0.1:8080/hook?disabletls=yes", "generic"},
		"a server of Mattermost":               {"mattermost://chat.example.com/0123456789abcdef", "mattermost"},
		"a topic of ntfy":                      {"ntfy://ntfy.sh/headwater", "ntfy"},
		"a room of Google Chat":                {"googlechat://chat.googleapis.com/v1/spaces/A/messages?key=k&token=t", "googlechat"},
		"a channel of Discord":                 {"discord://token@123456789", "discord"},
		"an integration of PagerDuty":          {"pagerduty://events.pagerduty.com/eb243592faa24ba2a5511afdf565c889", "pagerduty"},
		"an integration of Opsgenie":           {"opsgenie://api.opsgenie.com/eb243592-faa2-4ba2-a551-afdf565c889e", "opsgenie"},
		"a server of Rocket.Chat":              {"rocketchat://chat.example.com/tokenA/tokenB", "rocketchat"},
		"with space around it, as in a file":   {" " + slackWebhook + "\n", "slack"},
	} {
		t.Run(sentence, func(t *testing.T) {
			found, err := locate(c.url)
			require.NoError(t, err)
			require.Equal(t, c.service, found.GetID())
		})
	}
}

func TestWhatIsWrongWithAReceiverIsSaidWithoutItsURL(t *testing.T) {
	for sentence, c := range map[string]struct {
		receiver Receiver
		want     string
	}{
		"no URL":                      {Receiver{}, "n.url: Required value: say where to report, or name a file that does with urlFile"},
		"both":                        {Receiver{URL: slackWebhook, URLFile: "/a"}, "n.urlFile: Forbidden: a receiver has a url or a urlFile, not both; remove one"},
		"a file of no certain place":  {Receiver{URLFile: "a"}, `n.urlFile: Invalid value: "a": write the whole path, such as /etc/headwater-notify/url`},
		"text":                        {Receiver{URL: "s3cret"}, "n.url: Forbidden: is not a URL; write it as https://…, or as SERVICE://…"},
		"text with a colon":           {Receiver{URL: "https://s3cret:\x7f"}, "n.url: Forbidden: is not a URL; write it as https://…, or as SERVICE://…"},
		"no host":                     {Receiver{URL: "https:///s3cret"}, "n.url: Forbidden: has no host; write it as https://HOST/PATH"},
		"an unknown service":          {Receiver{URL: "smtp://s3cret@host"}, `n.url: Forbidden: "smtp" is no service that is known; write https://… for a webhook, or one of discord://, generic://, googlechat://, mattermost://, ntfy://, opsgenie://, pagerduty://, rocketchat://, slack://, teams://`},
		"a bad token":                 {Receiver{URL: "slack://s3cret@webhook"}, "n.url: Forbidden: is no URL of slack; write https://hooks.slack.com/services/…, as Slack gives it, or slack://xoxb:TOKEN@CHANNEL"},
		"no webhook of Slack":         {Receiver{URL: "https://hooks.slack.com/services/s3cret"}, "n.url: Forbidden: is no URL of slack; write https://hooks.slack.com/services/…, as Slack gives it, or slack://xoxb:TOKEN@CHANNEL"},
		"a template there is none of": {Receiver{URL: "https://s3cret?template=s3cret"}, "n.url: Forbidden: has an option that cannot be: template may be json, or left out"},
		"a method that sends nothing": {Receiver{URL: "https://s3cret?method=GET"}, "n.url: Forbidden: has an option that cannot be: method may be POST, PUT or PATCH"},
		"no workflow of Teams":        {Receiver{URL: "teams://s3cret@host"}, "n.url: Forbidden: is no URL of teams; write the https URL of a workflow, as Teams gives it"},
		"nothing to report":           {Receiver{URL: slackWebhook, On: []topic{}}, "n.on: Forbidden: would never report anything; name a topic, or remove it for the usual ones"},
		"a topic twice":               {Receiver{URL: slackWebhook, On: []topic{topicFailed, topicHeld, topicFailed}}, `n.on[2]: Duplicate value: "Failed"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			c.receiver.Default()
			errs := c.receiver.Validate(field.NewPath("n"))
			require.Len(t, errs, 1)
			require.Equal(t, c.want, errs[0].Error())
			require.NotContains(t, errs[0].Error(), "s3cret")
			require.NotContains(t, strings.ToLower(errs[0].Error()), "abcdefgh")
		})
	}
}
