/** Where the service keeps its own objects in the bucket: no path of a caller leads there. */
export const OWN_FOLDER = '.holdfast';

/** Uploads on their way to a commit. */
export const STAGING_FOLDER = `${OWN_FOLDER}/staging/`;

/** Reports of expired records. */
export const REPORTS_FOLDER = `${OWN_FOLDER}/reports/`;
