/** The folder for the service's own objects in the bucket. No path of a caller leads there. */
export const OWN_FOLDER = '.holdfast';

/** Uploads on their way to a commit. */
export const STAGING_FOLDER = `${OWN_FOLDER}/staging/`;

/** Reports of expired records. */
export const REPORTS_FOLDER = `${OWN_FOLDER}/reports/`;
