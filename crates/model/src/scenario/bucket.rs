//! Token buckets, on a path and on a host's way out.

use super::error::ScenarioError;
use super::keys::BUCKET;
use super::plan::TokenBucket;
use super::section::Section;

/// Reads a token bucket.
pub(super) fn bucket(
    section: &Section<'_>,
    name: &str,
) -> Result<Option<TokenBucket>, ScenarioError> {
    let Some(node) = section.node(name) else { return Ok(None) };
    let path = section.name(name);
    let bucket = Section::open(path.as_str(), BUCKET, Some(node))?;
    let needed = |key: &str| {
        bucket
            .number(key)?
            .ok_or_else(|| ScenarioError::new(&node.place, format!("`{path}` needs `{key}`")))
    };
    Ok(Some(TokenBucket {
        rate: needed("rate")?,
        burst: needed("burst")?,
        queue: bucket.figure("queue")?,
    }))
}
