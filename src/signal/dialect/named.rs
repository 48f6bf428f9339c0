//! The presets: one file each, inside the binary.

use super::Dialect;

/// Names and files, sorted.
const PRESETS: &[(&str, &str)] = &[
    ("airtable", include_str!("../dialects/airtable.json")),
    ("amazon_sp_api", include_str!("../dialects/amazon_sp_api.json")),
    ("anthropic", include_str!("../dialects/anthropic.json")),
    ("asana", include_str!("../dialects/asana.json")),
    ("attio", include_str!("../dialects/attio.json")),
    ("auth0", include_str!("../dialects/auth0.json")),
    ("aws", include_str!("../dialects/aws.json")),
    ("azure_openai", include_str!("../dialects/azure_openai.json")),
    ("binance", include_str!("../dialects/binance.json")),
    ("blockfrost", include_str!("../dialects/blockfrost.json")),
    ("bybit", include_str!("../dialects/bybit.json")),
    ("cloudflare", include_str!("../dialects/cloudflare.json")),
    ("coinbase", include_str!("../dialects/coinbase.json")),
    ("discord", include_str!("../dialects/discord.json")),
    ("discord_v6", include_str!("../dialects/discord_v6.json")),
    ("docker_hub_api", include_str!("../dialects/docker_hub_api.json")),
    ("docker_registry", include_str!("../dialects/docker_registry.json")),
    ("gemini", include_str!("../dialects/gemini.json")),
    ("generic", include_str!("../dialects/generic.json")),
    ("github", include_str!("../dialects/github.json")),
    ("gitlab", include_str!("../dialects/gitlab.json")),
    ("gohighlevel", include_str!("../dialects/gohighlevel.json")),
    ("google", include_str!("../dialects/google.json")),
    ("groq", include_str!("../dialects/groq.json")),
    ("hubspot", include_str!("../dialects/hubspot.json")),
    ("ietf", include_str!("../dialects/ietf.json")),
    ("jira", include_str!("../dialects/jira.json")),
    ("jira_dc", include_str!("../dialects/jira_dc.json")),
    ("kraken", include_str!("../dialects/kraken.json")),
    ("kucoin", include_str!("../dialects/kucoin.json")),
    ("lemlist", include_str!("../dialects/lemlist.json")),
    ("linear", include_str!("../dialects/linear.json")),
    ("mediawiki", include_str!("../dialects/mediawiki.json")),
    ("meta", include_str!("../dialects/meta.json")),
    ("microsoft_graph", include_str!("../dialects/microsoft_graph.json")),
    ("musicbrainz", include_str!("../dialects/musicbrainz.json")),
    ("notion", include_str!("../dialects/notion.json")),
    ("okta", include_str!("../dialects/okta.json")),
    ("openai", include_str!("../dialects/openai.json")),
    ("prisjakt", include_str!("../dialects/prisjakt.json")),
    ("reddit", include_str!("../dialects/reddit.json")),
    ("riot", include_str!("../dialects/riot.json")),
    ("rocketchat", include_str!("../dialects/rocketchat.json")),
    ("salesforce", include_str!("../dialects/salesforce.json")),
    ("sendgrid", include_str!("../dialects/sendgrid.json")),
    ("sentry", include_str!("../dialects/sentry.json")),
    ("sharepoint", include_str!("../dialects/sharepoint.json")),
    ("shopify_graphql", include_str!("../dialects/shopify_graphql.json")),
    ("shopify_rest", include_str!("../dialects/shopify_rest.json")),
    ("slack", include_str!("../dialects/slack.json")),
    ("smartsheet", include_str!("../dialects/smartsheet.json")),
    ("spotify", include_str!("../dialects/spotify.json")),
    ("strava", include_str!("../dialects/strava.json")),
    ("stripe", include_str!("../dialects/stripe.json")),
    ("twilio", include_str!("../dialects/twilio.json")),
    ("unknown", include_str!("../dialects/unknown.json")),
    ("whoop", include_str!("../dialects/whoop.json")),
    ("x", include_str!("../dialects/x.json")),
    ("xendit", include_str!("../dialects/xendit.json")),
    ("xero", include_str!("../dialects/xero.json")),
    ("youtube", include_str!("../dialects/youtube.json")),
    ("zendesk", include_str!("../dialects/zendesk.json")),
];

/// Other names for them.
const ALSO: &[(&str, &str)] = &[
    ("azure", "azure_openai"),
    ("confluence", "jira"),
    ("docker_hub", "docker_registry"),
    ("graph", "microsoft_graph"),
    ("jira_cloud", "jira"),
    ("jira_data_center", "jira_dc"),
    ("ms_graph", "microsoft_graph"),
    ("msgraph", "microsoft_graph"),
    ("sp_api", "amazon_sp_api"),
    ("twitter", "x"),
];

pub fn names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _)| *name)
}

pub fn find(name: &str) -> Option<Dialect> {
    let name = name.trim().to_ascii_lowercase().replace('-', "_");
    let name = ALSO.iter().find(|(also, _)| *also == name).map_or(&*name, |(_, name)| name);
    let at = PRESETS.binary_search_by(|(preset, _)| (*preset).cmp(name)).ok()?;
    // Each of them is read in a test.
    PRESETS[at].1.parse().ok()
}

/// Of all dialects the one that says nothing of its own.
pub fn generic() -> Dialect {
    "{}".parse().expect("an empty dialect is one")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::PRESETS;

    #[test]
    fn nobody_knows_where_a_preset_is_from() {
        for (name, text) in PRESETS {
            let written: Value = text.parse().expect(name);
            let sources = written["source"].as_array().expect(name);
            assert!(
                sources.iter().any(|source| source.as_str().is_some_and(|url| url.starts_with("https://")))
            );
            assert!(written["checked"].as_str().is_some_and(|date| date.len() == 7), "{name}: YYYY-MM");
        }
    }
}
